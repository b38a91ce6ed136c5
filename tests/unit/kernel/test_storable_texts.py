"""Storable texts: is a text that a database would refuse made one that it takes, and is every other left as it is?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.http.parsers import make_storable


@pytest.mark.parametrize(
    ("text", "storable"),
    [
        ("", ""),
        ("plain", "plain"),
        ("naïve 😀", "naïve 😀"),
        ("na\0me", "na\ufffdme"),
        ("na\ud83dme", "na\ufffdme"),
        ("\ude00", "\ufffd"),
        ("\ud83d\ud83d\ude00", "\ufffd😀"),
    ],
)
def test_what_no_database_takes_is_replaced(text: str, storable: str) -> None:
    assert make_storable(text) == storable


@given(st.text(st.characters(exclude_categories=[])))
def test_what_is_storable_stays(text: str) -> None:
    made = make_storable(text)

    assert made.encode().decode() == made
    assert "\0" not in made
    assert make_storable(made) == made
