"""Callbacks: who is told, on another server, that a call has ended."""
