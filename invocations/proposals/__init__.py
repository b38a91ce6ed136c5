"""Proposals: one call as a model proposes it."""
