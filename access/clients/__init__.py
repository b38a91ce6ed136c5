"""Clients that people of a tenant enter by hand: programs that have no document of their own and do not register."""
