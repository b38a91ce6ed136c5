"""Saved views: searches of calls that somebody makes again, each with an address of its own."""
