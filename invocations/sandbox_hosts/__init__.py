"""Sandbox hosts: what the sandboxes of all hosts report."""
