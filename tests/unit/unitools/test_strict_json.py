"""Strict JSON: does the strict reader take what every reader understands alike, and say of all else what is wrong with it?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.strict_json import STRICT, JsonReader, JsonRefused, iter_texts

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_all_ordinary_json_is_read_as_it_was_written_from_text_and_from_bytes(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)

    assert STRICT.read(text) == STRICT.read(text.encode()) == value


@pytest.mark.parametrize(
    ("document", "code", "subject"),
    [
        ("", "invalid_json", ""),
        ("{} {}", "invalid_json", ""),
        ("\ufeff1", "invalid_json", ""),
        ('{"a": 1, "b": 2, "b": 3, "a": 4}', "duplicate_key", "b"),
        ('{"a": 1, "\\u0061": 2}', "duplicate_key", "a"),
        ("[-Infinity]", "not_a_number", "-Infinity"),
        ("[NaN]", "not_a_number", "NaN"),
        ("1e999", "huge_number", ""),
        ("9" * 5000, "huge_number", ""),
        ("[" * 100_000, "too_deep", ""),
        (b'"\xff"', "bad_encoding", ""),
        (b'"\xed\xa0\x80"', "bad_encoding", ""),
        ('"\\ud800"', "bad_text", ""),
        (b'{"\\udfff": 1}', "bad_text", ""),
        ('"\ud800"', "bad_text", ""),
    ],
    ids=repr,
)
def test_what_readers_understand_differently_is_refused(document: str | bytes, code: str, subject: str) -> None:
    with pytest.raises(JsonRefused) as caught:
        STRICT.read(document)

    assert (caught.value.code, caught.value.subject) == (code, subject)
    assert (caught.value.syntax is not None) == (code == "invalid_json")


@pytest.mark.parametrize("document", ['["ä", [1]]', '["ä", [1]]'.encode()], ids=["text", "bytes"])
def test_limits_hold_for_text_and_bytes_alike(document: str | bytes) -> None:
    assert STRICT.read(document, max_bytes=11, max_depth=2) == ["ä", [1]]
    with pytest.raises(JsonRefused, match="larger than 10 bytes"):
        STRICT.read(document, max_bytes=10)
    with pytest.raises(JsonRefused, match="more than 1 deep"):
        STRICT.read(document, max_depth=1)


def test_a_reader_has_rules_of_its_own_for_numbers_and_nul() -> None:
    def refuse(text: str) -> int:
        raise JsonRefused("huge_number", f"{text} is too much.")

    reader = JsonReader(read_whole=refuse, takes_nul=False)

    with pytest.raises(JsonRefused, match="7 is too much"):
        reader.read("7")
    with pytest.raises(JsonRefused, match="NUL"):
        reader.read('["\\u0000"]')
    assert STRICT.read('["\\u0000"]') == ["\0"]


def test_every_text_of_a_value_is_found() -> None:
    assert sorted(iter_texts({"a": ["b", {"c": None}], "d": 1})) == ["a", "b", "c", "d"]
