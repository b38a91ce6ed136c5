"""Parsers: how a model's calls are taken from a provider's answer, and the results said in its dialect. One module per dialect."""
