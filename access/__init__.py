"""Who may do what?"""
