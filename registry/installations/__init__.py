"""Installations: a tenant's own instance of a tool, its version and its settings."""
