"""Levels of isolation: at which levels of isolation do the attacks take place, and which of them only in `make test-all`?"""

from __future__ import annotations

import pytest

EVERY = ["fresh", "shared", pytest.param("single", marks=pytest.mark.long)]
MOSTLY_FRESH = pytest.mark.parametrize(
    "arena",
    ["fresh", pytest.param("shared", marks=pytest.mark.long), pytest.param("single", marks=pytest.mark.long)],
    indirect=True,
    scope="module",
)
