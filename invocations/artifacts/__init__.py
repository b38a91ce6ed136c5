"""Artifacts: what a call leaves for its caller beside the result: images, documents, long tables."""
