"""Connections: which programs act as which agents, because which people have let them."""
