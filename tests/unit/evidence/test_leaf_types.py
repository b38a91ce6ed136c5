"""Types of leaves: what old leaves say is read and written back byte for byte, and each field says what it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evidence.kinds import Kind
from evidence.leaves import ABSENT, LEAF_TYPES, Leaf, find_leaf_type
from evidence.leaves.call_begins import Begin
from evidence.leaves.call_ends import End
from kernel.canonical import canonicalize

if TYPE_CHECKING:
    from evidence.leaves.base import LeafPart

ROWS = (Path(__file__).parent / "golden_leaves.jsonl").read_text("utf-8").splitlines()
GOLDEN = [json.loads(line)["leaf"] for line in ROWS]
NO_DATA = {Kind.CONSENT_EXPIRED, Kind.CONSENT_USED, Kind.SINK_TESTED, Kind.SUBJECT_ERASED}
# A test wrote it and no service did: reading passes over what nobody knows.
UNKNOWN = (Kind.TOOL_PAUSED, {"n": 0})


@pytest.mark.parametrize("raw", GOLDEN, ids=[f"{n}-{json.loads(each)['kind']}" for n, each in enumerate(GOLDEN)])
def test_a_golden_leaf_read_in_its_type_is_written_back_byte_for_byte(raw: str) -> None:
    document = json.loads(raw)
    leaf = Leaf.from_data(document)

    again = leaf.to_data()
    if leaf.data:
        again["data"] = leaf.read_data(find_leaf_type(leaf.kind)).to_data()

    if (leaf.kind, leaf.data) == UNKNOWN:
        again["data"] = document["data"]
    assert canonicalize(again) == raw.encode()


def test_each_kind_has_a_type_or_says_nothing_of_its_own() -> None:
    assert set(Kind) - {Kind(kind) for kind in LEAF_TYPES} == NO_DATA


def test_each_field_says_what_it_is() -> None:
    types: set[type[LeafPart]] = {Leaf, *LEAF_TYPES.values()}
    silent = [f"{cls.__name__}.{field.key}" for cls in types for field in cls.list_fields() if not field.doc]

    assert not silent


def test_what_an_older_leaf_does_not_say_reads_as_absent() -> None:
    begin, end = Begin.from_data({"origin": "api"}), End.from_data(None)

    assert (begin.origin, begin.dry_run, begin.decision) == ("api", ABSENT, None)
    assert not begin.dry_run
    assert not end.state
    assert (begin.to_data(), end.to_data()) == ({"origin": "api"}, {})


def test_what_a_newer_leaf_says_beside_is_passed_over() -> None:
    assert Begin.from_data(
        {"origin": "api", "weather": "fine", "policy": {"version": "hub@1", "author": "x"}}
    ).to_data() == {
        "origin": "api",
        "policy": {"version": "hub@1"},
    }
