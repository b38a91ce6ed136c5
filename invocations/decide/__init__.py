"""Decision, the first stage of a call: may it be made, and within what?"""
