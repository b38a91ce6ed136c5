"""Sandbox: what runs inside the box, and how the box is made. See README.md here; ``sandbox.image`` is its recipe."""
