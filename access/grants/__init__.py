"""Grants: which tools an agent may use, within which terms, and who asked for it."""
