"""Sandbox: where a tool's code runs, and what it may reach there."""
