"""Issuers: identity providers whose signed tokens a tenant accepts, and the agents that their subjects are."""
