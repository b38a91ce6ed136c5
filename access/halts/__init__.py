"""Halts: kill switches that stop calls at once, for a tool, a version, an agent, a tenant or the hub."""
