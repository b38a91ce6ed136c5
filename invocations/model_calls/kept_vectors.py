"""Kept vectors: what is stored of an embedding.

Vectors are large, and whoever asked for them keeps them. Few are sealed with the call like any answer; of many only their digest is,
and the answer says so. The first answer has all of them, one that is read again has not.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from invocations.end.end_record import Ending

MAX_KEPT = 65_536  # numbers; written down, a MiB or so
NOT_KEPT = "These are {count:,} numbers, which are not kept: reading this call again gives their digest."


def bound_vectors(ending: Ending) -> tuple[Ending, dict[str, Any] | None]:
    """The ending as it is stored, and the whole data where that is more."""
    data = ending.output
    vectors = data.get("vectors") if isinstance(data, dict) else None
    if not isinstance(vectors, list):
        return ending, None
    count = sum(map(len, vectors))
    if count <= MAX_KEPT:
        return ending, None
    stored = data | {"vectors": None, "vectors_digest": digest_vectors(vectors), "count": len(vectors)}
    warnings = [*ending.warnings, NOT_KEPT.format(count=count)]
    return replace(ending, output=stored, warnings=warnings), data | {"vectors_digest": stored["vectors_digest"]}


def digest_vectors(vectors: list[list[float]]) -> str:
    """Of the numbers as 32-bit floats, the lowest byte first, vector after vector."""
    numbers = list(chain.from_iterable(vectors))
    return f"sha256:{hashlib.sha256(struct.pack(f'<{len(numbers)}f', *numbers)).hexdigest()}"
