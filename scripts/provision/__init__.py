"""Provision: how a bare machine becomes one that runs and tests the hub. Standard library only: nothing is installed yet."""
