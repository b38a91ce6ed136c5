"""Probes: whether a process of the hub is alive and ready, and who asks it."""
