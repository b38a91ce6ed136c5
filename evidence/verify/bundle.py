"""Bundle: how it is written.

The parts of an export bundle (docs/reference/bundle.md) as bytes, made by whoever has the facts and the signing key. All is
pure and a bundle may be made in pieces: what must be remembered in between is the list of :class:`BundleEntry`, plain numbers
and texts.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .archive import CHECKPOINT, CONSISTENCY, FACTS, GLOBAL, MANIFEST, MAX_FILES, OLDER, VKEYS
from .dsse import Statement, sign_statement
from .proofs import ConsistencyProof, InclusionProof

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .notes import Signer

__all__ = [
    "CHECKPOINT",
    "CONSISTENCY",
    "GLOBAL",
    "MANIFEST",
    "OLDER",
    "VKEYS",
    "BundleEntry",
    "build_manifest",
    "consistency_file",
    "fact_line",
    "facts_name",
    "inclusion_file",
    "opened_value",
    "zip_end",
    "zip_entry",
]

PREDICATE_TYPE = "urn:toolhub:evidence-bundle:v1"
MAX_OFFSET = 0xFFFF_FFFF  # of the zip format without its extension

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_VERSION, _UTF8, _DEFLATED, _DATE = 20, 0x800, 8, 0x21  # 1980-01-01, so that equal content is equal bytes


@dataclass(frozen=True)
class BundleEntry:
    """A file of the bundle: what its manifest and the directory of the zip file say of it."""

    name: str
    sha256: str
    crc: int
    size: int
    packed: int  # bytes in the zip file
    offset: int  # where its header stands there

    @property
    def end(self) -> int:
        """The offset of what follows."""
        return self.offset + _LOCAL.size + len(self.name) + self.packed

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def facts_name(first: int) -> str:
    """The file of the facts that begin with leaf ``first``. A bundle has as many as it likes, in order of the leaves."""
    name = f"facts/{first:012}.jsonl"
    if not FACTS.fullmatch(name):
        raise ValueError(f"There is no leaf {first}.")
    return name


def fact_line(
    *,
    index: int,
    leaf: bytes,
    path: Sequence[bytes],
    checkpoint: str,
    columns: Mapping[str, str] | None = None,
    values: Iterable[Mapping[str, str]] = (),
) -> bytes:
    """A line of a facts file. ``checkpoint`` is the note of the bundle's checkpoint, ``values`` are of :func:`opened_value`.

    A leaf that is not UTF-8 any more is shown with replacement characters; the verifier names it."""
    line: dict[str, Any] = {
        "index": index,
        "leaf": leaf.decode(errors="replace"),
        "proof": InclusionProof(index, tuple(path), checkpoint).text(),
    }
    if columns is not None:
        line["columns"] = dict(columns)
    if opened := [dict(value) for value in values]:
        line["values"] = opened
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def opened_value(*, snapshot: str, salt: str, value: bytes) -> dict[str, str]:
    """A sealed value, opened: the salt in base64 and the JSON text that the commitment is over."""
    return {"snapshot": snapshot, "salt": salt, "value": value.decode()}


def consistency_file(*, old: int, path: Sequence[bytes], checkpoint: str) -> bytes:
    return ConsistencyProof(old, tuple(path), checkpoint).text().encode()


def inclusion_file(*, index: int, path: Sequence[bytes], checkpoint: str) -> bytes:
    """``global.tlog-proof``: that the text of the bundle's checkpoint is leaf ``index`` of the log of checkpoints."""
    return InclusionProof(index, tuple(path), checkpoint).text().encode()


def build_manifest(
    entries: Iterable[BundleEntry],
    *,
    signers: Iterable[Signer],
    origin: str,
    start: int,
    stop: int,
    complete: bool,
    open_calls: Iterable[str] = (),
    about: Mapping[str, Any] | None = None,
) -> bytes:
    """The list of files, the last file of a bundle; ``signers`` are all keys that sign the log at this time.

    ``complete``: the bundle has every leaf from ``start`` to ``stop`` - 1, else a selection of them. ``open_calls`` are those that
    began in it and had not ended by ``stop``. ``about`` is free: who made it, when, with which query.
    """
    predicate = {
        "origin": origin,
        "start": start,
        "stop": stop,
        "complete": complete,
        "open": sorted(open_calls),
        "about": dict(about or {}),
    }
    return sign_statement(
        Statement({entry.name: entry.sha256 for entry in entries}, PREDICATE_TYPE, predicate), *signers
    )


def zip_entry(name: str, data: bytes, *, offset: int) -> tuple[bytes, BundleEntry]:
    """A file as it stands in a zip file at ``offset``: its header and packed content."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(data) + packer.flush()
    entry = BundleEntry(name, hashlib.sha256(data).hexdigest(), zlib.crc32(data), len(data), len(packed), offset)
    if max(entry.end, entry.size) > MAX_OFFSET:
        raise ValueError("A bundle has less than 4 GiB: export a shorter range.")
    header = _LOCAL.pack(b"PK\3\4", *_described(entry), len(name), 0)
    return header + name.encode("ascii") + packed, entry


def zip_end(entries: Sequence[BundleEntry]) -> bytes:
    """What follows the last file of a zip file: its directory."""
    if len(entries) > MAX_FILES:
        raise ValueError(f"A bundle has at most {MAX_FILES} files: put more facts into each.")
    directory = b"".join(
        _CENTRAL.pack(b"PK\1\2", _VERSION, *_described(entry), len(entry.name), 0, 0, 0, 0, 0, entry.offset)
        + entry.name.encode("ascii")
        for entry in entries
    )
    start = entries[-1].end if entries else 0
    return directory + _END.pack(b"PK\5\6", 0, 0, len(entries), len(entries), len(directory), start, 0)


def _described(entry: BundleEntry) -> tuple[int, ...]:
    return (_VERSION, _UTF8, _DEFLATED, 0, _DATE, entry.crc, entry.packed, entry.size)
