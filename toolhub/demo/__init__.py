"""Demonstration: the tenant, tools and scenes that a new hub begins with."""
