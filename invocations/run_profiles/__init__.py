"""Run profiles: what calls may reach, kept once for all calls that may reach the same."""
