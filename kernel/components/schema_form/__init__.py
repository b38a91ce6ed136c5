"""Schema forms: a form of controls for a JSON Schema, and the value that was typed into it."""
