"""Tries: calls that people make from the page of a tool, as the playground's agent or as an agent that they may act through."""
