"""Kernel: what every package shares; ids, problems, principals, and below it database, HTTP, observability, components."""
