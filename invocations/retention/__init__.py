"""Retention: how long values of calls are kept, and how they are erased."""
