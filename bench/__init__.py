"""Benchmarks: how fast it is here, and compared with what. `python -m bench` measures; docs/explanation/figures.md explains it."""
