"""Served formats over HTTP: models asked in the words of other people's programs, on the way that every call of a model goes."""
