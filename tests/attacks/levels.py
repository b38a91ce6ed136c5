"""Levels of isolation: at which levels, and over which way to the boxes, do the attacks take place, and which of them only in
`make test-all`?"""

from __future__ import annotations

import pytest

EVERY = [
    "fresh",
    "shared",
    pytest.param("single", marks=pytest.mark.long),
    pytest.param("shared over unix", marks=pytest.mark.long),
    pytest.param("fresh over tls", marks=pytest.mark.long),
]
MOSTLY_FRESH = pytest.mark.parametrize(
    "arena",
    ["fresh", pytest.param("shared", marks=pytest.mark.long), pytest.param("single", marks=pytest.mark.long)],
    indirect=True,
    scope="module",
)
