"""OAuth: the token endpoint with its metadata, and the signed tokens (JWT) that speak for an agent."""
