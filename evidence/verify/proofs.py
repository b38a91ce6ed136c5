"""Proofs: how one travels in a file.

A *tlog-proof* (c2sp.org/tlog-proof) shows that a leaf is in a log: its index, the hashes, the checkpoint. A *consistency
file* shows that a log continues an older one; it is what c2sp.org/tlog-witness sends to a witness: the older size, the
hashes, the newer checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .merkle import HASH_BYTES, leaf_hash, verify_consistency, verify_inclusion
from .problems import MalformedEvidence
from .strict import decode_base64, decode_decimal, encode_base64

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .notes import Checkpoint

HEADER = "c2sp.org/tlog-proof@v1"
MAX_HASHES = 63  # what the largest tree needs


@dataclass(frozen=True)
class InclusionProof:
    """That a leaf has this index in the log of ``note``. ``extra`` is nobody's statement: it is not signed."""

    index: int
    path: tuple[bytes, ...]
    note: str
    extra: bytes = b""

    def text(self) -> str:
        extra = [f"extra {encode_base64(self.extra)}"] if self.extra else []
        return _joined([HEADER, *extra, f"index {self.index}"], self.path, self.note)

    @classmethod
    def parse(cls, text: str) -> InclusionProof:
        first, _, rest = text.partition("\n")
        if first != HEADER:
            raise MalformedEvidence(f"A tlog-proof does not begin with the line {HEADER}.")
        extra = b""
        if rest.startswith("extra "):
            line, _, rest = rest.partition("\n")
            extra = decode_base64(line.removeprefix("extra "), where="The extra data of a tlog-proof")
        index, path, note = _parsed(rest, "index ", "tlog-proof", most=MAX_HASHES)
        return cls(index, path, note, extra)

    def verify(self, leaf: bytes, checkpoint: Checkpoint) -> None:
        """Raises :class:`InvalidProof`. ``checkpoint`` is that of the note, opened with a trusted key."""
        verify_inclusion(leaf_hash(leaf), self.index, checkpoint.size, self.path, checkpoint.root)


@dataclass(frozen=True)
class ConsistencyProof:
    """That the log of ``note`` begins with the ``old`` leaves that an older checkpoint speaks of."""

    old: int
    path: tuple[bytes, ...]
    note: str

    def text(self) -> str:
        return _joined([f"old {self.old}"], self.path, self.note)

    @classmethod
    def parse(cls, text: str) -> ConsistencyProof:
        return cls(*_parsed(text, "old ", "consistency proof", most=2 * MAX_HASHES))

    def verify(self, older: Checkpoint, newer: Checkpoint) -> None:
        if older.size != self.old:
            raise MalformedEvidence(
                f"The consistency proof is from {self.old} leaves, the older checkpoint has {older.size}."
            )
        verify_consistency(older.size, newer.size, older.root, newer.root, self.path)


def _joined(head: Iterable[str], path: Sequence[bytes], note: str) -> str:
    return "".join(f"{line}\n" for line in (*head, *map(encode_base64, path))) + "\n" + note


def _parsed(text: str, word: str, what: str, *, most: int) -> tuple[int, tuple[bytes, ...], str]:
    head, separator, note = text.partition("\n\n")
    if not separator or not note:
        raise MalformedEvidence(f"A {what} does not end with an empty line and a checkpoint.")
    number, *lines = head.split("\n")
    if not number.startswith(word):
        raise MalformedEvidence(f"A {what} lacks the line that begins with {word.strip()!r}.")
    if len(lines) > most:
        raise MalformedEvidence(f"A {what} has more than {most} hashes.")
    path = tuple(decode_base64(line, where=f"A hash of a {what}") for line in lines)
    if any(len(hash) != HASH_BYTES for hash in path):
        raise MalformedEvidence(f"A hash of a {what} does not have {HASH_BYTES} bytes.")
    return decode_decimal(number.removeprefix(word), where=f"The number of a {what}"), path, note
