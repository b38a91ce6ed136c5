"""Compatibility: what changed between two JSON Schemas 2020-12, and whether it breaks whoever relies on the old one.

Each :class:`SchemaChange` has an effect on the values that are valid there: more are (``widened``), fewer are (``narrowed``),
the same are (``same``), or it cannot be told (``unclear``). Whether that breaks depends on the direction (:func:`compute_bump`):

* ``input``: callers send values, so accepting more is compatible and accepting less breaks;
* ``output``: callers receive values, so returning less is compatible and returning more breaks.

It is sound: without a ``major`` change every value that was valid stays valid (input), or every value that is valid now was
valid before (output). Each effect is proved (:mod:`~unitools.compatibility.containment`); what has no proof counts as the worse
one, so a change can be called breaking that is none. Of regular expressions and formats only "the same" is known.
"""

from __future__ import annotations

from typing import Any

from unitools.compatibility.claims import serialize_value
from unitools.compatibility.kinds import SCHEMA_KINDS, Direction, SchemaChange, SchemaEffect, compute_bump
from unitools.compatibility.schema_diff import SchemaDiff
from unitools.compatibility.schemas import Incomparable, Schema, SchemaPair

__all__ = [
    "SCHEMA_KINDS",
    "Direction",
    "SchemaChange",
    "SchemaEffect",
    "compare_schemas",
    "compute_bump",
    "is_compatible",
]


def is_compatible(old: Any, new: Any, direction: Direction) -> bool:
    """Can callers of the old schema go on with the new one? A yes is proved."""
    return all(change.bump(direction) != "major" for change in compare_schemas(old, new))


def compare_schemas(old: Any, new: Any) -> list[SchemaChange]:
    """All differences, outer ones first; none exactly when both are equal."""
    incomparable = SchemaChange("cannot_be_compared", "", old, new, SchemaEffect.UNCLEAR)
    try:
        if serialize_value(old) == serialize_value(new):
            return []
        before, after = Schema(old), Schema(new)
        if before.problem or after.problem:
            return [incomparable]
        found = SchemaDiff(SchemaPair(before, after)).changes()
    except (Incomparable, RecursionError):
        return [incomparable]
    return found or [SchemaChange("rewritten", "", old, new, SchemaEffect.SAME)]
