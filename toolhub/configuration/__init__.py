"""Configuration: how the whole configuration of a tenant is kept in one file."""
