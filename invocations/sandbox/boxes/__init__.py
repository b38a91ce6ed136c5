"""Boxes: how a container is made, loaded, talked to and removed."""
