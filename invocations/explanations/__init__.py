"""Explanations: why an agent can or cannot call a tool, and what would change that."""
