"""Isolation: the walls around a box, and whether they stand on this host."""
