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

from kernel.problems import Conflict

if TYPE_CHECKING:
    from invocations.end.endings import Ending

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
    digest, warnings = digest_vectors(vectors), [*ending.warnings, NOT_KEPT.format(count=count)]
    stored = {name: each for name, each in data.items() if name != "vectors"}
    stored |= {"vectors_digest": digest, "count": len(vectors)}
    return replace(ending, output=stored, warnings=warnings), data | {"vectors_digest": digest}


def check_vectors_kept(data: Any) -> None:
    """Refuse an answer that is read again where its form has no word for a digest."""
    if isinstance(data, dict) and "vectors_digest" in data and "vectors" not in data:
        raise Conflict(
            "The vectors of this call were given once, and are not kept.",
            remedy="Ask again with another idempotency key, or read the call for their digest.",
        )


def digest_vectors(vectors: list[list[float]]) -> str:
    """Of the numbers as 32-bit floats, the lowest byte first, vector after vector."""
    numbers = list(chain.from_iterable(vectors))
    return f"sha256:{hashlib.sha256(struct.pack(f'<{len(numbers)}f', *numbers)).hexdigest()}"
