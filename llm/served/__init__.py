"""Served formats: how the hub's models are asked, and answer, in the words that other people's programs speak."""
