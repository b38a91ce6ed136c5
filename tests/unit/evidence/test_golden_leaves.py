"""Leaves as the hub wrote them from 26 November 2026 on, one of each kind and more of calls. They are never edited: what people have
verified stays verifiable, whatever writes leaves tomorrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evidence.kinds import Kind
from evidence.verify.facts import leaf_columns
from evidence.verify.merkle import leaf_hash
from kernel.canonical import canonicalize

GOLDEN = [json.loads(line) for line in (Path(__file__).parent / "golden_leaves.jsonl").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(
    "golden", GOLDEN, ids=[f"{n}-{json.loads(each['leaf'])['kind']}" for n, each in enumerate(GOLDEN)]
)
def test_a_golden_leaf_is_canonical_hashes_as_then_and_has_its_columns(golden: dict[str, Any]) -> None:
    raw = golden["leaf"].encode()
    leaf = json.loads(raw)

    assert leaf_hash(raw).hex() == golden["hash"]
    assert canonicalize(leaf) == raw
    assert leaf_columns(leaf)["kind"] == leaf["kind"]
    assert leaf["kind"] in Kind.values


def test_each_kind_has_a_golden_leaf() -> None:
    assert set(Kind.values) <= {json.loads(each["leaf"])["kind"] for each in GOLDEN}
