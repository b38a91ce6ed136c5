"""Model prefixes: the text that a tenant puts before every conversation with its models."""
