"""Submissions: what a developer brings to the hub, what is found about it, and how far each version has come."""
