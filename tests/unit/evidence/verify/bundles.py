"""A small log with calls, sealed values and witnesses, and bundles of it."""

from __future__ import annotations

import base64
import hashlib
import json
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evidence.verify import bundle
from evidence.verify.facts import leaf_columns
from evidence.verify.merkle import consistency_proof, inclusion_proof
from evidence.verify.notes import Checkpoint, Cosigner, Signer, add_lines, clock_name, sign
from evidence.verify.tiles import ENTRIES, iter_tiles, pack_entries
from tests.unit.evidence.verify.trees import ORIGIN, SIGNER, MemoryTiles, private_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GLOBAL_SIGNER = Signer("hub.example/evidence/checkpoints", private_key(1))
WITNESS = Cosigner("witness.example/w1", private_key(2))
CLOCK = Cosigner(clock_name(ORIGIN), private_key(4))
AT = 1_790_000_000
VALUE = b'{"arguments":{"city":"Berlin"}}'
SALT = bytes(range(32))
TIMES = "2026-11-22T21:35:00.000001+00:00"


def leaf(number: int, kind: str, invocation: str = "", **more: Any) -> bytes:
    document = {
        "actor": {"id": "agt_1", "kind": "agent"},
        "at": TIMES,
        "id": f"fct_{number}",
        "kind": kind,
        "subject": invocation or "ten_1",
        "tenant": "ten_1",
        "v": 1,
        **({"invocation": invocation} if invocation else {}),
        **more,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def sealed(snapshot: str) -> dict[str, Any]:
    commit = "sha256:" + hashlib.sha256(SALT + VALUE).hexdigest()
    return {"input": {"alg": "sha256-jcs", "bytes": len(VALUE), "commit": commit, "snapshot": snapshot}}


def facts(count: int) -> list[bytes]:
    """Calls that begin and end, two facts each; the last begin of an odd count stays open."""
    return [
        leaf(number, "invocation.ended", f"inv_{number // 2}", outcome="succeeded")
        if number % 2
        else leaf(number, "invocation.began", f"inv_{number // 2}", data=sealed(f"snp_{number // 2}"))
        for number in range(count)
    ]


@dataclass
class Log:
    """What a hub has: leaves, a key, a log of checkpoints that a witness cosigns."""

    leaves: list[bytes]
    signer: Signer = SIGNER
    tiles: MemoryTiles = field(init=False)

    def __post_init__(self) -> None:
        self.tiles = MemoryTiles(self.leaves)

    def checkpoint(self, size: int | None = None) -> str:
        size = len(self.leaves) if size is None else size
        text = Checkpoint(self.signer.name, size, self.tiles.root(size)).text()
        return add_lines(sign(text, self.signer), CLOCK.line(text, at=AT))

    def proof(self, index: int, size: int | None = None) -> list[bytes]:
        return inclusion_proof(self.tiles, index, len(self.leaves) if size is None else size)

    def global_log(self, *, witnessed: bool = True) -> bytes:
        text = self.checkpoint().partition("\n\n")[0] + "\n"
        tiles = MemoryTiles([b"another tenant's", text.encode(), b"and another's"])
        head = Checkpoint(GLOBAL_SIGNER.name, 3, tiles.root(3)).text()
        note = sign(head, GLOBAL_SIGNER)
        if witnessed:
            note = add_lines(note, WITNESS.line(head, at=AT + 1))
        return bundle.inclusion_file(index=1, path=inclusion_proof(tiles, 1, 3), checkpoint=note)


def lines_of(log: Log, start: int, stop: int, *, opened: bool = False) -> Iterator[bytes]:
    for index in range(start, stop):
        document = json.loads(log.leaves[index])
        snapshots = [each["snapshot"] for each in document.get("data", {}).values()] if opened else []
        values = [
            bundle.opened_value(snapshot=name, salt=base64.b64encode(SALT).decode(), value=VALUE) for name in snapshots
        ]
        yield bundle.fact_line(
            index=index,
            leaf=log.leaves[index],
            path=log.proof(index),
            checkpoint=log.checkpoint(),
            columns=leaf_columns(document),
            values=values,
        )


def files_of(
    log: Log, *, start: int = 0, stop: int | None = None, older: int | None = None, opened: bool = True, piece: int = 4
) -> dict[str, bytes]:
    """All files of a bundle but its manifest."""
    stop = len(log.leaves) if stop is None else stop
    keys = [log.signer.key, CLOCK.key, GLOBAL_SIGNER.key, WITNESS.key]
    files = {
        bundle.VKEYS: "".join(f"{key}\n" for key in keys).encode(),
        bundle.CHECKPOINT: log.checkpoint().encode(),
        bundle.GLOBAL: log.global_log(),
    }
    if older is not None:
        files[bundle.OLDER] = log.checkpoint(older).encode()
        path = consistency_proof(log.tiles, older, len(log.leaves))
        files[bundle.CONSISTENCY] = bundle.consistency_file(old=older, path=path, checkpoint=log.checkpoint())
    for first in range(start, stop, piece):
        lines = lines_of(log, first, min(first + piece, stop), opened=opened)
        files[bundle.facts_name(first)] = b"".join(lines)
    return files


def open_calls(log: Log, start: int, stop: int) -> list[str]:
    began = {f"inv_{number // 2}" for number in range(start, stop) if number % 2 == 0}
    return sorted(began - {f"inv_{number // 2}" for number in range(start, stop) if number % 2})


def write(path: Path, log: Log, files: dict[str, bytes], **manifest: Any) -> Path:
    """The bundle as a zip file, with a manifest of these files."""
    said: dict[str, Any] = {
        "signers": [log.signer],
        "origin": log.signer.name,
        "start": 0,
        "stop": len(log.leaves),
        "complete": True,
    }
    said |= manifest
    said.setdefault("open_calls", open_calls(log, said["start"], said["stop"]))
    packed, entries = b"", []
    for name, data in files.items():
        piece, entry = bundle.zip_entry(name, data, offset=len(packed))
        packed += piece
        entries.append(entry)
    signed = bundle.build_manifest(entries, **said)
    piece, entry = bundle.zip_entry(bundle.MANIFEST, signed, offset=len(packed))
    path.write_bytes(packed + piece + bundle.zip_end([*entries, entry]))
    return path


def unpack(path: Path, folder: Path) -> Path:
    """As an auditor's own program unpacks it."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        archive.extractall(folder)
    return folder


def mirror(folder: Path, log: Log) -> Path:
    """The log as files, copied to this folder."""
    for tile in iter_tiles(len(log.leaves)):
        path = folder / str(tile)
        path.parent.mkdir(parents=True, exist_ok=True)
        first = tile.n * 256
        leaves = log.leaves[first : first + tile.width]
        path.write_bytes(pack_entries(leaves) if tile.level == ENTRIES else log.tiles.tiles[tile.level, tile.n])
    (folder / "checkpoint").write_text(log.checkpoint())
    (folder / "vkeys").write_text(f"{SIGNER.key}\n{CLOCK.key}\n")
    return folder
