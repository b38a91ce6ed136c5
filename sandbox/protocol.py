"""Protocol: how the hub and a box talk.

One stream each way, frames on it::

    "TB"  version  kind  sequence:u32  length:u32  mac:16  body

The MAC is BLAKE2s over header and body, with one key for each direction. The hub makes both keys and sends them in
the first frame (``HELLO``); the process that will run the tool is forked before that frame is read, so no tool ever
has a key in its memory. A frame that is out of order, too long or wrongly signed ends the conversation: there is no
resynchronising.

A body is made of parts (:func:`pack`): a small JSON head, then byte strings that nobody here looks into. The
conversation::

    hub   HELLO keys                        box   READY   what this box is
          LOAD   level, limits, package           LOADED  whether it can be called; the box ends when it cannot
          CALL   arguments                        EVENT*  what the tool says meanwhile, when the call asks for it
          CANCEL (at any time of a call)          RESULT  how it ended, what it said; the box ends when it is not clean

A ``CALL`` may follow its ``LOAD`` at once. A box is loaded once and called one call at a time.
"""

from __future__ import annotations

import json
import struct

try:
    from _blake2 import blake2s  # the module behind hashlib, without loading OpenSSL: this is on the path of every call
except ImportError:  # pragma: no cover - another Python implementation
    from hashlib import blake2s

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VERSION = 16  # an image and a hub of different sources do not misunderstand each other, they part
KEY_BYTES = 32
MAX_FRAME_BYTES = (
    40 * 1024 * 1024
)  # a package of 16 MiB and its arguments; files and artifacts of 16 MiB each; with room

HELLO, READY, LOAD, LOADED, CALL, EVENT, RESULT, CANCEL = range(1, 9)

_MAGIC = b"TB"
_HEADER = struct.Struct("!2sBBII")
_MAC_BYTES = 16
_LENGTH = struct.Struct("!I")

# How a tool's process reports, on its own pipe: IMPORTED as soon as its module is imported, then one REPORT header, the
# value's bytes, the bytes of a JSON object with everything else, and those of the artifacts. All of it is the tool's word only.
IMPORTED = b"L"
REPORT = struct.Struct("!BII")
RETURNED, DOMAIN_ERROR, RAISED, BAD_RESULT, BLOCKED, NO_MEMORY, EXITED, TOO_LARGE, NOT_AS_DECLARED = range(1, 10)
MAX_REPORT_BYTES = 64 * 1024
WALLS_ARE_UP = b"up"  # said to the supervisor, before the tool can say anything
PIPES = b"pipes"  # said by it, with the four of the call


_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class ProtocolError(Exception):
    """The other side did not keep to the protocol."""


class FrameChannel:
    """Frames over two functions: ``read(n)`` gives exactly n bytes or raises ``EOFError``, ``write`` takes all."""

    def __init__(self, read: Callable[[int], bytes], write: Callable[[bytes], None]) -> None:
        self._read = read
        self._write = write
        self._key_in = self._key_out = b""
        self._next_in = self._next_out = 0

    def open(self, keys: bytes) -> None:
        """The hub's side: hand over the keys."""
        self.send(HELLO, keys)
        self._key_out, self._key_in = keys[:KEY_BYTES], keys[KEY_BYTES:]

    def accept(self) -> None:
        """The box's side: take the keys."""
        keys = self.receive(HELLO)
        if len(keys) != 2 * KEY_BYTES:
            raise ProtocolError("The first frame holds no keys.")
        self._key_in, self._key_out = keys[:KEY_BYTES], keys[KEY_BYTES:]

    def send(self, kind: int, body: bytes) -> None:
        if len(body) > MAX_FRAME_BYTES:
            raise ProtocolError(f"A frame holds {MAX_FRAME_BYTES} bytes at most, this one has {len(body)}.")
        header = _HEADER.pack(_MAGIC, VERSION, kind, self._next_out, len(body))
        self._next_out += 1
        self._write(header + _mac(self._key_out, header, body) + body)

    def receive(self, kind: int) -> bytes:
        """The body of the next frame, which must be of this kind."""
        return self.receive_one_of(kind)[1]

    def receive_one_of(self, *kinds: int) -> tuple[int, bytes]:
        """The kind and the body of the next frame, which must be of one of these kinds."""
        start = self._read(_HEADER.size + _MAC_BYTES)
        header, mac = start[: _HEADER.size], start[_HEADER.size :]
        magic, version, got, sequence, length = _HEADER.unpack(header)
        if magic != _MAGIC or version != VERSION or length > MAX_FRAME_BYTES:
            raise ProtocolError("Not a frame of this protocol.")
        body = self._read(length)
        if mac != _mac(self._key_in, header, body) or sequence != self._next_in:
            raise ProtocolError("A frame is forged, repeated or out of order.")
        if got not in kinds:
            raise ProtocolError(f"Expected a frame of kind {' or '.join(map(str, kinds))}, got {got}.")
        self._next_in += 1
        return got, body


def _mac(key: bytes, header: bytes, body: bytes) -> bytes:
    state = blake2s(header, key=key, digest_size=_MAC_BYTES)
    state.update(body)
    return state.digest()


def read_json(text: bytes) -> Any:
    """As ``json.loads`` reads UTF-8, by fewer steps, since it is read in the process of each call. ``ValueError`` where it is none."""
    whole = text.decode().strip(" \t\r\n")
    try:
        value, end = _scan(whole, 0)
    except StopIteration as nothing:
        raise ValueError("It is not JSON.") from nothing
    if end != len(whole):
        raise ValueError("It is more than one value of JSON.")
    return value


def pack(head: dict[str, Any], *parts: bytes) -> bytes:
    text = json.dumps(head | {"parts": [len(part) for part in parts]}).encode()
    return b"".join((_LENGTH.pack(len(text)), text, *parts))


def unpack_head(body: bytes) -> dict[str, Any]:
    """Only the head, without copying the parts."""
    try:
        (length,) = _LENGTH.unpack_from(body)
        head: dict[str, Any] = read_json(body[_LENGTH.size : _LENGTH.size + length])
    except (struct.error, ValueError) as error:
        raise ProtocolError("A body cannot be read.") from error
    return head


def unpack(body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The head and the parts; trust it as far as you trust the one who packed it."""
    try:
        (length,) = _LENGTH.unpack_from(body)
        start = _LENGTH.size + length
        head = read_json(body[_LENGTH.size : start])
        parts = []
        for size in head.pop("parts"):
            parts.append(body[start : start + size])
            start += size
    except (struct.error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ProtocolError("A body cannot be read.") from error
    if start != len(body):
        raise ProtocolError("A body is cut short or too long.")
    return head, parts
