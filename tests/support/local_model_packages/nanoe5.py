"""Stands where a hub looks for its local embedder. Nobody asks it for a vector."""
