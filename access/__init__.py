"""Access: who may do what."""
