"""Whole log: whether a log is, leaf by leaf, the one that its checkpoints speak of.

Reads the stored bytes of all leaves once, in order, and remembers a few dozen hashes: a million leaves take seconds and no
memory to speak of. The first leaf that is wrong is named, and the rest is still looked at.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING

from .merkle import EMPTY, HASH_BYTES, TILE_WIDTH, Frontier
from .problems import MalformedEvidence
from .report import VerificationFinding
from .tiles import ENTRIES, MAX_LEAF_BYTES, TilePath, unpack_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from .notes import Checkpoint

_BATCH = 4096
_GZIP = b"\x1f\x8b\x08"  # no bundle of facts begins so: behind its length each is JSON


def check_log(
    rows: Iterable[tuple[int, bytes, bytes | None]],
    checkpoints: Iterable[Checkpoint] = (),
    *,
    frontier: Frontier | None = None,
) -> Iterator[VerificationFinding]:
    """What is wrong with these leaves; nothing comes out when all is well.

    ``rows``: (index, leaf, the hash that is stored of it or None), in order. ``checkpoints``: verified ones, in order of size; each
    is compared when its size is reached, so the first that does not fit bounds where a change is. ``frontier``: the tree before
    the first row, if it is not the empty one; it is moved on and can be kept to go on from later.
    """
    tree = Frontier() if frontier is None else frontier
    pending: list[bytes] = []
    heads = iter(checkpoints)
    head = next(heads, None)
    sha256, good_size, torn = hashlib.sha256, tree.size, False
    while head is not None and head.size < tree.size:
        head = next(heads, None)

    def flush() -> None:
        tree.append_many(pending)
        pending.clear()

    def compare() -> Iterator[VerificationFinding]:
        nonlocal head, good_size
        while head is not None and head.size == tree.size + len(pending):
            flush()
            if tree.root() == head.root:
                good_size = head.size
            elif not torn:
                yield VerificationFinding(
                    f"The leaves {good_size} to {head.size - 1} are not those of the checkpoint of {head.size} leaves: "
                    "their tree has another root."
                )
            head = next(heads, None)

    yield from compare()
    for index, leaf, stored in rows:
        expected = tree.size + len(pending)
        if index < expected:
            yield VerificationFinding(
                f"It comes where leaf {expected} must be: the log has it twice or in another order.", index
            )
            continue
        if index > expected:
            last = f" to {index - 1}" if index - 1 > expected else ""
            yield VerificationFinding(f"It is missing{last and f', and so is every leaf{last}'}.", expected)
            torn = True  # no root fits any more; the leaves themselves are still looked at
            while index > tree.size + len(pending):
                pending.append(EMPTY)
                if len(pending) >= _BATCH:
                    flush()
                yield from compare()
        hash = sha256(b"\x00" + leaf).digest()
        if stored is not None and hash != stored:
            yield VerificationFinding("Its bytes do not have the hash that is stored for it: it was changed.", index)
        pending.append(hash)
        if len(pending) >= _BATCH:
            flush()
        if head is not None and index + 1 == head.size:
            yield from compare()
    flush()
    if head is not None:
        yield VerificationFinding(
            f"It is missing: the log ends before its checkpoint of {head.size} leaves.", tree.size
        )


def iter_mirror_leaves(folder: Path, size: int) -> Iterator[tuple[int, bytes, bytes | None]]:
    """The leaves of a log that was copied as files (c2sp.org/tlog-tiles), with the hashes of its tiles of level 0."""
    for n in range(-(-size // TILE_WIDTH)):
        first = n * TILE_WIDTH
        width = min(TILE_WIDTH, size - first)
        entries = unpack_entries(_tile(folder, ENTRIES, n, width, TILE_WIDTH * (MAX_LEAF_BYTES + 2)))
        hashes = _tile(folder, 0, n, width, TILE_WIDTH * HASH_BYTES)
        if len(entries) < width or len(hashes) < width * HASH_BYTES:
            raise MalformedEvidence(f"The tiles of leaves {first} to {first + width - 1} have too few entries.")
        for at in range(width):
            yield first + at, entries[at], hashes[at * HASH_BYTES :][:HASH_BYTES]


def _tile(folder: Path, level: int, n: int, width: int, most: int) -> bytes:
    """The tile, or the full one where the log has grown since."""
    for path in (TilePath(level, n, width), TilePath(level, n)):
        file = folder / str(path)
        if file.is_file():
            if file.stat().st_size > most:
                raise MalformedEvidence(f"{path} is larger than a tile can be.")
            data = file.read_bytes()
            return _unpack(data, path, most) if level == ENTRIES and data.startswith(_GZIP) else data
    raise MalformedEvidence(f"{TilePath(level, n, width)} is missing.")


def _unpack(data: bytes, path: TilePath, most: int) -> bytes:
    """Of a bundle that was copied as it lies in object storage, without the header that says how it is packed."""
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(data, most + 1)
    except zlib.error as error:
        raise MalformedEvidence(f"{path} is compressed, and cannot be unpacked: it was changed or cut.") from error
    if len(unpacked) > most:
        raise MalformedEvidence(f"{path} is larger than a tile can be.")
    if not unpacker.eof or unpacker.unused_data:
        raise MalformedEvidence(f"{path} is compressed, and cannot be unpacked: it was changed or cut.")
    return unpacked
