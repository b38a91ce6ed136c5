"""Providers of models: one module for each kind, imported when a provider of that kind is registered."""
