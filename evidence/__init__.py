"""Evidence: what happened, and the proof of it."""
