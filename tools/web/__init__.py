"""Tools that look at pages of the web, in the sandbox's own browser."""
