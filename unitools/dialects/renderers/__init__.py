"""Renderers: how each dialect is told of tools. One module per dialect."""
