"""Approvals: calls that are held until a person decides, and what that person gets to see."""
