"""Invocations: what becomes of a call."""
