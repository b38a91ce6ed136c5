"""What can be called?"""
