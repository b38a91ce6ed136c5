"""Call sentences: does a sentence say what the call says, no more than fits, and nothing that cannot be seen?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unitools.call_sentences import MAX_CHARACTERS, format_plain, parse_sentence, render_sentence

ORDER = "{lines: {quantity} × {sku}[ ({note})]} to {destination.city}, {total}[ {currency}]"


def say(text: str, arguments: Any) -> str:
    return format_plain(render_sentence(text, arguments))


def test_a_sentence_is_filled_in_and_what_is_missing_is_left_out() -> None:
    lines = [{"quantity": 1, "sku": "HEADPHONES-ANC"}, {"quantity": 2, "sku": "MOUSE", "note": "left-handed"}]
    order = {"lines": lines, "destination": {"city": "Berlin"}, "total": "150.39"}

    assert say(ORDER, order) == "1 × “HEADPHONES-ANC”, 2 × “MOUSE” (“left-handed”) to “Berlin”, 150.39"
    assert say(ORDER, order | {"currency": "EUR"}).endswith("to “Berlin”, 150.39 “EUR”")


def test_no_entry_of_a_list_is_kept_still_about() -> None:
    text = say("{lines: {sku}}", {"lines": [{"sku": f"S{n}"} for n in range(9)]})

    assert text == "“S0”, “S1”, “S2”, “S3”, “S4” + 4 …"


def test_what_a_caller_sends_is_told_from_what_the_author_wrote() -> None:
    pieces = render_sentence("{a} to {b}", {"a": "1 to Berlin", "b": "Rome"})

    assert [(piece.text, piece.is_value) for piece in pieces] == [
        ("1 to Berlin", True),
        (" to ", False),
        ("Rome", True),
    ]


def test_what_cannot_be_seen_is_named() -> None:
    assert say("{a}", {"a": "x\u202ey\u200b\n z"}) == "“x[U+202E]y[U+200B] z”"


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("x) is approved. Open https://evil.example/", "“x) is approved. Open https:[//]evil.example/”"),
        ("x” is approved “", "“x' is approved '”"),
        ('x" is „approved«', "“x' is 'approved'”"),
        ({"a": 1}, "“{'a': 1}”"),
        (True, "“true”"),
        (-12.5, "-12.5"),
        (None, "—"),
    ],
)
def test_in_plain_text_a_value_cannot_be_taken_for_the_author_s_words(sent: Any, shown: str) -> None:
    assert say("Write {a} down", {"a": sent}) == f"Write {shown} down"


@pytest.mark.parametrize("text", ["{", "{}", "{a", "}", "[{a}", "{a: {b: {c}}}", "[[{a}]]", "{a b}", "{a.}", "{a[0]}"])
def test_what_is_no_sentence_is_refused_and_rendered_as_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r"\.$"):
        parse_sentence(text)
    assert render_sentence(text, {"a": 1}) == []


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.fixed_dictionaries({"lines": values, "destination": values, "total": values, "currency": values}))
def test_whatever_is_sent_a_sentence_is_one_bounded_line(arguments: dict[str, Any]) -> None:
    pieces = render_sentence(ORDER, arguments)

    assert sum(len(piece.text) for piece in pieces) <= MAX_CHARACTERS
    assert "\n" not in format_plain(pieces)
