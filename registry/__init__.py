"""Registry: what can be called."""
