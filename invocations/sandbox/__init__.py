"""Where does a tool's code run, and what may it reach there?"""
