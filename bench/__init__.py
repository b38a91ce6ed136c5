"""How fast is it here, and compared with what? `python -m bench` measures; see docs/explanation/figures.md for reading it."""
