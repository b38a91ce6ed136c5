"""Imports: tools that others have made, brought in the console."""
