"""What happened, and can anyone prove it?"""
