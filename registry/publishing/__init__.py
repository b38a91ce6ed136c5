"""How does the code of tools come to the hub as signed archives, and whose signatures count?"""
