"""Reference: what the generated pages of docs/reference say."""
