"""Versions: how a version is checked, compared with the one before it and registered."""
