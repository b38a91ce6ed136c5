"""Secrets: values that tools need and nobody may see."""
