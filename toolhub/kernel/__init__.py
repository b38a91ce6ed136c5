"""What does everyone share?"""
