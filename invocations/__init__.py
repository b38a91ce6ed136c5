"""What becomes of a call?"""
