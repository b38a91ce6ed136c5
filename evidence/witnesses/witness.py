"""Witness: whether a checkpoint continues all that it has seen of a log.

The witness's side of c2sp.org/tlog-witness: it remembers of each log it watches the newest checkpoint that it has cosigned, and
cosigns one that provably continues it. Nothing of the hub and no Django is needed for it.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from evidence.verify import merkle, notes
from evidence.verify.problems import InvalidEvidence, InvalidProof
from evidence.verify.strict import decode_base64, decode_decimal

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

MAX_PROOF = 63
MAX_REQUEST_BYTES = 1 << 16
SIZE_TYPE = "text/x.tlog.size"
TEXT_TYPE = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class WitnessAnswer:
    status: int
    body: str
    media_type: str = TEXT_TYPE


@dataclass(frozen=True, slots=True)
class WitnessRequest:
    """``old``: the size that the client believes the witness has seen."""

    old: int
    proof: list[bytes]
    note: str

    def text(self) -> str:
        return f"old {self.old}\n" + "".join(f"{_base64(hash)}\n" for hash in self.proof) + "\n" + self.note

    @classmethod
    def parse(cls, body: bytes) -> WitnessRequest:
        """Raises :class:`~evidence.verify.problems.InvalidEvidence` for what is not of the format."""
        try:
            head, separator, note = body.decode().partition("\n\n")
        except UnicodeDecodeError as error:
            raise InvalidEvidence("The request is not UTF-8.") from error
        first, *lines = head.split("\n")
        if not separator or not first.startswith("old ") or len(lines) > MAX_PROOF:
            raise InvalidEvidence(
                "A request is a line with the old size, at most 63 hashes, an empty line and a checkpoint."
            )
        proof = [decode_base64(line, where="A hash of the proof") for line in lines]
        return cls(decode_decimal(first[4:], where="The old size"), proof, note)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class WitnessState:
    """The newest cosigned checkpoint of each log, in a file that is replaced as a whole and on the disk before anybody is told."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: dict[str, tuple[int, bytes]] = {}
        if path.exists():
            for origin, (size, root) in json.loads(path.read_text()).items():
                self._seen[origin] = (int(size), base64.b64decode(root))

    def of(self, origin: str) -> tuple[int, bytes]:
        return self._seen.get(origin, (0, merkle.EMPTY))

    def remember(self, origin: str, size: int, root: bytes) -> None:
        seen = self._seen | {origin: (size, root)}
        text = json.dumps({name: [size, _base64(root)] for name, (size, root) in sorted(seen.items())}, indent=1)
        scratch = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(self._path)
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._seen = seen


class Witness:
    """``logs``: the vkeys of the logs that it watches; several of one name when a key was rotated."""

    def __init__(self, cosigner: notes.Cosigner, logs: Iterable[str], state: WitnessState) -> None:
        self._cosigner, self._state = cosigner, state
        self._keys: dict[str, list[notes.VerifierKey]] = {}
        for text in logs:
            key = notes.VerifierKey.parse(text)
            self._keys.setdefault(key.name, []).append(key)
        self._turn = threading.Lock()

    @property
    def origins(self) -> list[str]:
        return sorted(self._keys)

    def add_checkpoint(self, body: bytes) -> WitnessAnswer:
        try:
            asked = WitnessRequest.parse(body)
            text, _ = notes.split_note(asked.note)
            claimed = notes.Checkpoint.parse(text)
        except InvalidEvidence as error:
            return WitnessAnswer(400, f"{error}\n")
        if claimed.origin not in self._keys:
            return WitnessAnswer(404, "This log is not watched here.\n")
        try:
            checkpoint = notes.open_checkpoint(asked.note, self._keys[claimed.origin], origin=claimed.origin)
        except InvalidEvidence as error:
            return WitnessAnswer(403, f"{error}\n")
        if asked.old > checkpoint.size:
            return WitnessAnswer(400, "The old size is larger than that of the checkpoint.\n")
        with self._turn:  # what was seen is compared and replaced by one at a time
            return self._judge(asked, checkpoint, text)

    def _judge(self, asked: WitnessRequest, checkpoint: notes.Checkpoint, text: str) -> WitnessAnswer:
        size, root = self._state.of(checkpoint.origin)
        if asked.old != size or (size == checkpoint.size and root != checkpoint.root):
            return WitnessAnswer(409, f"{size}\n", SIZE_TYPE)
        try:
            merkle.verify_consistency(size, checkpoint.size, root, checkpoint.root, asked.proof)
        except InvalidProof as error:
            return WitnessAnswer(422, f"{error}\n")
        if checkpoint.size != size:
            self._state.remember(checkpoint.origin, checkpoint.size, checkpoint.root)
        return WitnessAnswer(200, self._cosigner.line(text, at=int(time.time())))


def read_or_make_key(path: Path, name: str) -> notes.Cosigner:
    """The witness's private key, made on its first start: 32 bytes as base64 in a file that only its owner reads."""
    if not path.exists():
        private = Ed25519PrivateKey.generate()
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(_base64(private.private_bytes_raw()) + "\n")
            file.flush()
            os.fsync(file.fileno())
    private = Ed25519PrivateKey.from_private_bytes(base64.b64decode(path.read_text().strip(), validate=True))
    return notes.Cosigner(name, private)
