"""How is the whole configuration of a tenant kept in one file?"""
