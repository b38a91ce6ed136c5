"""Metrics: what of calls and of the whole hub leaves the process as numbers."""
