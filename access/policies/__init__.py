"""Policies: which calls the hub's rules and the tenant's rules allow, and within what."""
