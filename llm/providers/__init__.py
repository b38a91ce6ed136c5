"""Providers: who answers requests, each a kind of its own; and what they share."""
