"""Tools: the states of a published tool, and whether a tenant can call it."""
