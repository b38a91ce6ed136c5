"""How much may be used, how much is, and who is told no when it is used up?"""
