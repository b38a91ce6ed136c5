"""Demonstration: the stories that `make demo` tells against a running hub."""
