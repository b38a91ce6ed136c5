"""Capsules: signed packages of tools, and whose signatures count."""
