"""Configuration text: is a configuration file read as it is meant, and is nothing built from one that is hostile?"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolhub.configuration.document import load_document_schema, read_document
from toolhub.configuration.file_format import MAX_BYTES, MAX_DEPTH, read_text, write_text
from toolhub.configuration.problems import ConfigurationInvalid

WORDS = st.sampled_from(
    [
        *[
            "",
            "null",
            "~",
            "true",
            "No",
            "on",
            "1e3",
            "0x1F",
            "012",
            "12:30",
            "2027-01-31",
            "=",
            "<<",
            "- a",
            "a: b",
            "a #b",
        ],
        *[
            "'",
            '"',
            "\n",
            " a ",
            "!x",
            "&x",
            "*x",
            "%x",
            "@x",
            "`x",
            "a\tb",
            "\x85",
            "\u2028",
            "\ufeff",
            "|",
            ">",
            "?",
            "---",
            "...",
        ],
    ]
)
TEXTS = WORDS | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda each: st.lists(each, max_size=4) | st.dictionaries(TEXTS, each, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.sampled_from(["yaml", "json"]))
@settings(deadline=None)
def test_what_is_written_is_read_back(document: dict[str, Any], form: str) -> None:
    read = read_text(write_text(document, form))

    assert read == document
    assert json.dumps(read) == json.dumps(document)  # 1 is not true, and not 1.0


def test_words_that_yaml_reads_in_its_own_ways_are_texts() -> None:
    text = "a: 2027-01-31\nb: yes\nc: off\nd: 12:30\ne: 0x1F\nf: 1_000\ng: .inf\nh: 012\n"

    assert set(map(type, read_text(text).values())) == {str}
    assert read_text("a:\nb: ~\nc: True\nd: -5\ne: 1.5e3\nf: {x: [1, y]}\n") == {
        "a": None,
        "b": None,
        "c": True,
        "d": -5,
        "e": 1500.0,
        "f": {"x": [1, "y"]},
    }


BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (BOMB, "aliases"),
        ("a: &x 1\nb: *x\n", "aliases"),
        ("agents: &x []\n", "aliases"),
        ("<<: *x\n", "alias"),
        ("!!python/object/apply:os.system [ls]", "tags"),
        ("a: !!binary aGk=", "tags"),
        ("[" * 5000, "nested"),
        ("- " * 5000 + "a", "nested"),
        ('{"a":' * 100_000, "nested"),
        ("{a: " * 40 + "1" + "}" * 40, "nested"),
        ('{"a":' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "nested"),
        ("a: 1\na: 2\n", "twice"),
        ('{"a": 1, "a": 2}', "twice"),
        ("{a: 1, a: 2}", "twice"),
        ("1: a\n'1': b\n", "twice"),
        ("? [1, 2]\n: a\n", "is a word"),
        ("a: 1\n---\nb: 2\n", "document"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e999}', "too large"),
        ("a: 1e999", "too large"),
        ("a: " + "9" * 5000, "cannot be read"),
        ('{"a": ' + "9" * 5000 + "}", "too large"),
        ('{"a": "\\u0000"}', "no text"),
        ('a: "\\0"', "no text"),
        ('{"a": "\\ud800"}', "no text"),
        ("a: b: c", "Line 1"),
        ("a: [1,\n", "Line"),
        ('{"a" 1}', "Line 1, column 6"),
        ("a: \x01", "neither JSON nor YAML"),
        ("", "empty"),
        (" \n ", "empty"),
        ("- x\n" * 250_000, "values|bytes"),
        ("x" * (MAX_BYTES + 1), "bytes"),
    ],
    ids=lambda text: str(text)[:12],
)
def test_a_file_that_is_hostile_or_unclear_is_refused_before_anything_is_built(text: str, because: str) -> None:
    with pytest.raises(ConfigurationInvalid, match=because) as caught:
        read_text(text)

    assert caught.value.details["findings"]


def test_bytes_that_are_no_text_are_refused_and_a_byte_order_mark_is_not() -> None:
    with pytest.raises(ConfigurationInvalid, match="UTF-8"):
        read_text(b"a: \xff")
    assert read_text(b"\xef\xbb\xbfa: 1") == {"a": 1}


# What the schema and the rules of a file say.


@pytest.mark.parametrize(
    ("file", "pointer"),
    [
        ({}, ""),
        ([], ""),
        ({"format": 2}, "/format"),
        ({"format": True}, "/format"),
        ({"format": 1, "agnets": []}, ""),
        ({"format": 1, "tenant": 5}, "/tenant"),
        ({"format": 1, "prune": ["policy"], "policy": {}}, "/prune/0"),
        ({"format": 1, "prune": True}, "/prune"),
        ({"format": 1, "agents": {}}, "/agents"),
        ({"format": 1, "agents": [{"name": "*"}]}, "/agents/0/name"),
        ({"format": 1, "agents": [{"name": " a"}]}, "/agents/0/name"),
        ({"format": 1, "agents": [{"name": "a", "key": "hub_live_x"}]}, "/agents/0"),
        ({"format": 1, "agents": [{"name": "a", "disabled": "no"}]}, "/agents/0/disabled"),
        ({"format": 1, "agents": [{"name": "a"}, {"name": "a"}]}, "/agents/1"),
        ({"format": 1, "grants": [{"agent": "a", "tools": "*"}]}, "/grants/0"),
        ({"format": 1, "grants": [{"agent": "a", "tools": "a b", "reason": "x"}]}, "/grants/0/tools"),
        ({"format": 1, "grants": [{"agent": "a", "tools": "*", "reason": " "}]}, "/grants/0/reason"),
        ({"format": 1, "grants": [{"agent": "a", "tools": "*", "reason": "x", "window_s": 5}]}, "/grants/0"),
        ({"format": 1, "grants": [{"agent": "a", "tools": "*", "reason": "x", "expires_at": "soon"}]}, "/grants/0/expires_at"),
        (
            {"format": 1, "grants": [{"agent": "a", "tools": "*", "reason": "x", "expires_at": "2027-01-31T12:00:00"}]},
            "/grants/0/expires_at",
        ),
        (
            {
                "format": 1,
                "grants": [
                    {"agent": "a", "tools": "*", "reason": "x", "calls_limit": 1, "limits": [{"dimension": "calls", "amount": 2}]}
                ],
            },
            "/grants/0/limits",
        ),
        ({"format": 1, "budgets": [{"scope": "grant", "dimension": "calls", "amount": 1}]}, "/budgets/0/scope"),
        ({"format": 1, "budgets": [{"scope": "tenant", "dimension": "calls", "amount": 1.5}]}, "/budgets/0/amount"),
        ({"format": 1, "installations": [{"tool": "a.b.c", "secrets": {"T": {"value": "x"}}}]}, "/installations/0/secrets/T"),
        ({"format": 1, "installations": [{"tool": "a.b.c", "state": "removed"}]}, "/installations/0/state"),
        (
            {"format": 1, "issuers": [{"issuer": "https://a", "audience": "b", "jwks": {"keys": []}, "jwks_url": "x"}]},
            "/issuers/0/jwks",
        ),
        ({"format": 1, "policy": {"format": 1, "rules": [{"id": "x", "effect": "alow"}]}}, "/policy/rules/0/effect"),
        ({"format": 1, "policy": None}, "/policy"),
        ({"format": 1, "members": [{"user": "a", "roles": []}]}, "/members/0/roles"),
        ({"format": 1, "members": [{"user": "a", "roles": ["god"]}]}, "/members/0/roles/0"),
    ],
    ids=lambda each: str(each)[:60],
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said_at_its_place(file: Any, pointer: str) -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        read_document(file)

    assert pointer in [each["pointer"] for each in caught.value.details["findings"]]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    rows = [{"name": number} for number in range(3)]

    with pytest.raises(ConfigurationInvalid, match="3 findings") as caught:
        read_document({"format": 1, "agents": rows})

    assert [each["pointer"] for each in caught.value.details["findings"]] == [f"/agents/{n}/name" for n in range(3)]


def test_private_parts_of_pasted_keys_are_dropped() -> None:
    issuer = {"issuer": "https://a", "audience": "b", "jwks": {"keys": [{"kty": "EC", "x": "1", "d": "private"}]}}

    found = read_document({"format": 1, "issuers": [issuer]})

    assert found.entries["issuers"][0].fields["jwks"] == {"keys": [{"kty": "EC", "x": "1"}]}


def test_every_field_of_the_schema_says_what_it_is() -> None:
    """The reference page is made of it."""
    for name, section in load_document_schema()["properties"].items():
        assert section.get("description"), name
        for field, said in section.get("items", {}).get("properties", {}).items():
            assert said.get("description", "").endswith("."), f"{name}.{field}"
