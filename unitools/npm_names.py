"""Npm names: how what is of npm is told from what is of PyPI."""

from __future__ import annotations

PREFIX = "npm:"


def is_of_npm(text: str) -> bool:
    """Whether a dependency, a package of an origin or a line of a lock is of npm."""
    return text.startswith(PREFIX)
