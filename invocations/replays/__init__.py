"""Replays: going through a call again, and whether what comes of it is what was recorded."""
