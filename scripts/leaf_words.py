"""Leaf words: with which leaves are packed (:mod:`evidence.packed_leaves`), from leaves of each kind and the names of their fields.

``python -m scripts.leaf_words`` prints them. ``evidence/leaf_words_1.txt`` was made so and is never made again: what was packed with
them is unpacked with them for ever. Others, once leaves have become others, are a file and a first byte of their own.

Nearest the end, where they cost least, are the newest facts of a call; before them what else leaves say, what most of them say last.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from evidence.kinds import Kind
from evidence.leaves import LEAF_TYPES
from evidence.packed_leaves import mark_values

GOLDEN = Path(__file__).resolve().parent.parent / "tests/unit/evidence/golden_leaves.jsonl"
MOST_BYTES = 7_900  # what a window of 8 kB keeps in sight
LEAST_BYTES, LEAST_LEAVES = 6, 2
WHOLE = (Kind.INVOCATION_ENDED, Kind.INVOCATION_BEGAN)
_PIECE = re.compile(rb"(?<=[,{\[])")
# Times and numbers of one leaf, and what one hub alone says: its people, hosts and names made at random.
_OWN = re.compile(
    rb'[0-9]{4}-[0-9]{2}-[0-9]{2}T|[0-9]{5}|usr_|client-|127\.0\.0\.1|\.example\b|"(?=[^"]*[0-9])(?=[^"]*[A-Z])[A-Za-z0-9]{20,}"'
)


def make_words() -> bytes:
    leaves = [json.loads(line)["leaf"].encode() for line in GOLDEN.read_text("utf-8").splitlines()]
    texts = [mark_values(leaf)[0] for leaf in leaves]
    found = b"".join([text for text in texts if b'"kind":"%s"' % kind.encode() in text][-1] for kind in WHOLE)
    pieces = Counter(piece for text in texts for piece in set(_PIECE.split(text)))
    names = Counter(
        b'"%s":' % field.key.rpartition(".")[2].encode() for each in LEAF_TYPES.values() for field in each.list_fields()
    )
    for piece, leaves_with_it in (pieces + names).most_common():
        wanted = len(piece) >= LEAST_BYTES and leaves_with_it >= LEAST_LEAVES and not _OWN.search(piece)
        if wanted and piece not in found and len(piece) + len(found) <= MOST_BYTES:
            found = piece + found
    return found


if __name__ == "__main__":
    sys.stdout.buffer.write(make_words())
