"""Outcome resolutions: what a person found out about a call whose outcome is unknown."""
