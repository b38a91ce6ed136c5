"""Facts: what a leaf says, and whether that fits what is said beside it.

Of a leaf's JSON verification knows the columns that are also kept for queries, the commitments to sealed values, and that a
call is a pair of facts: it began, and it ended.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .problems import InvalidEvidence, MalformedEvidence
from .strict import decode_base64, decode_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LEAF_VERSIONS = (1, 2)
# A call begins with the first and ends with the second; a dry run is a call of its own kind.
PAIRS = {"invocation.began": "invocation.ended", "dry_run.began": "dry_run.ended"}
BEGINNING_OF = {end: begin for begin, end in PAIRS.items()}
# Column to the way to it in the leaf. What a leaf leaves out is "" in its column.
COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "kind": ("kind",),
    "at": ("at",),
    "tenant": ("tenant",),
    "subject": ("subject",),
    "actor_kind": ("actor", "kind"),
    "actor_id": ("actor", "id"),
    "invocation": ("invocation",),
    "tool": ("tool",),
    "outcome": ("outcome",),
    "reason": ("reason",),
    "trace": ("trace",),
}
SALT_BYTES = 32


def parse_leaf(leaf: bytes, *, where: str = "The leaf") -> dict[str, Any]:
    document = decode_json(leaf, where=where)
    if not isinstance(document, dict) or document.get("v") not in LEAF_VERSIONS:
        raise MalformedEvidence(f"{where} is not a fact of a version that this verifier knows.")
    for name in COLUMNS:
        if not isinstance(_column(document, name), str):
            raise MalformedEvidence(f"{where} has no text at {'.'.join(COLUMNS[name])}.")
    return document


def leaf_columns(leaf: Mapping[str, Any]) -> dict[str, str]:
    """What the columns beside this leaf must say."""
    return {name: _column(leaf, name) for name in COLUMNS}


def check_columns(leaf: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    expected = leaf_columns(leaf)
    if unknown := sorted(columns.keys() - expected.keys()):
        raise MalformedEvidence(f"There is no column {unknown[0]!r}.")
    for name, value in columns.items():
        if value != expected[name]:
            raise InvalidEvidence(f"The column {name} says {value!r}, the leaf {expected[name]!r}.")


def iter_commitments(value: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each commitment of a leaf to sealed values: an object with ``commit`` and ``snapshot``, and the name that it has there."""
    if isinstance(value, dict):
        if isinstance(value.get("commit"), str) and isinstance(value.get("snapshot"), str):
            yield name, value
        for key, each in value.items():
            yield from iter_commitments(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from iter_commitments(each, name)


def check_value(commitment: Mapping[str, Any], *, salt: str, value: str) -> None:
    """Is this the value that the leaf committed to? The commitment is SHA-256 over 32 bytes of salt and the value's JSON text."""
    name = commitment["snapshot"]
    salted, document = decode_base64(salt, where=f"The salt of {name}"), value.encode()
    if len(salted) != SALT_BYTES:
        raise MalformedEvidence(f"The salt of {name} does not have {SALT_BYTES} bytes.")
    if "sha256:" + hashlib.sha256(salted + document).hexdigest() != commitment["commit"]:
        raise InvalidEvidence(f"The opened value of {name} is not the one that the leaf committed to.")
    if "bytes" in commitment and commitment["bytes"] != len(document):
        raise InvalidEvidence(
            f"The opened value of {name} has {len(document)} bytes, the leaf says {commitment['bytes']}."
        )


@dataclass
class Pairs:
    """Which calls of a range have begun and which have ended; keeps only those that still lack their other half."""

    complete: int = 0
    begun: dict[str, int] = field(default_factory=dict)  # invocation to leaf index
    ended: dict[str, int] = field(default_factory=dict)

    def add(self, index: int, leaf: Mapping[str, Any]) -> None:
        kind, invocation = leaf["kind"], leaf.get("invocation", "")
        if kind not in PAIRS and kind not in BEGINNING_OF:
            return
        if not invocation:
            raise InvalidEvidence(f"A fact of kind {kind} names no call.")
        mine, others = (self.begun, self.ended) if kind in PAIRS else (self.ended, self.begun)
        if invocation in mine:
            raise InvalidEvidence(
                f"The call {invocation} {'began' if kind in PAIRS else 'ended'} at leaf {mine[invocation]} already."
            )
        if others.pop(invocation, None) is None:
            mine[invocation] = index
        else:
            self.complete += 1


def _column(leaf: Mapping[str, Any], name: str) -> Any:
    value: Any = leaf
    for key in COLUMNS[name]:
        value = value.get(key, "") if isinstance(value, dict) else None
    return value
