"""Canonical JSON: are the bytes those of RFC 8785, whichever encoder has written them?"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from kernel.canonical import canonicalize


class Said(StrEnum):
    YES = "yes"


TEXTS = st.text(st.characters(codec=None), max_size=12)  # halves of characters too
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(2**53 - 3, 2**53 + 3)
    | st.integers(-(2**53) - 3, -(2**53) + 3)
    | st.floats()
    | TEXTS
    | st.just(Said.YES)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXTS, inner, max_size=5)
        | st.dictionaries(TEXTS | st.integers() | st.booleans() | st.none(), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(VALUES)
@example({"\ue000": 1, "\U0001f600": 2, "a": 3})  # by code units and by code points their order differs
@example({"a": '\x00\x1f\x7f\u2028"\\/\b\f\n\r\t'})
@example({"a": [True, 1, Said.YES, 1.0, -0.0, 1e21, 1e-7, 0.1]})
@example({"a": "\ud800"})
@example({1: "a", "b": 2})
@example(2**53)
def test_the_bytes_are_those_of_the_reference(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except (ValueError, TypeError) as refused:
        with pytest.raises(type(refused)):
            canonicalize(value)
    else:
        assert canonicalize(value) == expected


def test_leaves_of_all_times_have_the_bytes_that_they_had() -> None:
    golden = Path(__file__).parents[2] / "unit/evidence/golden_leaves.jsonl"
    lines = golden.read_bytes().splitlines()

    assert lines
    for line in lines:
        value = json.loads(line)
        assert canonicalize(value) == rfc8785.dumps(value)
