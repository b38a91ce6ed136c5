"""Messages: what goes over a stream between a worker and a sandbox host.

A message is a frame, and chunks of what does not fit into it::

    "TH"  version  kind  head length:u32  tail length:u32  head  tail

The head is a small JSON object whose ``parts`` says how long the byte strings are that follow it in the tail, and after it in frames
of kind ``CHUNK``. Every length is held against its limit before anything is allocated for it. Who may say what in a head is the
contract's (:mod:`invocations.sandbox.wire.contract`).
"""

from __future__ import annotations

import json
import struct
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from invocations.sandbox.wire.streams import PeerSilent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from invocations.sandbox.wire.streams import PeerStream

VERSION = 1
MIB = 1024 * 1024
MAX_HEAD_BYTES = 256 * 1024
MAX_CHUNK_BYTES = MIB
MAX_REQUEST_BYTES = 40 * MIB  # the parts of a request: arguments, files, as many as fit into a frame of a box
MAX_ANSWER_BYTES = 64 * MIB  # of an answer: what a box gives back, with the escapes of JSON
MAX_PARTS = 10_000
PING_EVERY_S = 5.0
MESSAGE_S = 20.0  # for a frame that has begun
ROOM_SLICE_S = 1.0  # so long one waits for memory before one says that one is there

REQUEST, ANSWER, EVENT, CHUNK, PING = range(1, 6)

_MAGIC = b"TH"
_HEADER = struct.Struct("!2sBBII")


class WireError(Exception):
    """The other side did not keep to the contract, or could not be asked to. The message says how."""


class OversizedHead(WireError):
    """A head fits into no message. Nothing of it was sent."""


@dataclass(frozen=True, slots=True)
class Message:
    """``kind``: one of the kinds of frames; ``head``: without its ``parts``, which are dropped where memory is short: not ``fits``."""

    kind: int
    head: dict[str, Any]
    parts: tuple[bytes, ...] = ()
    fits: bool = True


class RequestMemory:
    """Request memory: how many bytes of requests all connections of a host may hold together."""

    def __init__(self, most: int) -> None:
        self._free = most
        self._changed = threading.Condition()

    def exchange(self, held: int, wanted: int, *, within_s: float = 0.0) -> bool:
        """Give back ``held`` bytes and take ``wanted``, once there are so many. False when there are not by then: those held are given
        back all the same.
        """
        with self._changed:
            if held:
                self._free += held
                self._changed.notify_all()
            if not self._changed.wait_for(lambda: wanted <= self._free, within_s):
                return False
            self._free -= wanted
            return True


class MessageChannel:
    """Messages over a stream. One thread receives, any thread sends.

    ``most``: bytes of parts that are received. ``memory``: what the parts of a request are counted against, from before they are
    read until :meth:`release_request` or the next request. ``admit``: asked with the head of a request before that, says how many
    seconds it may wait for memory; or raises :class:`WireError`, and nothing of the request is kept.
    """

    def __init__(
        self,
        stream: PeerStream,
        *,
        most: int,
        memory: RequestMemory | None = None,
        admit: Callable[[dict[str, Any]], float] = lambda _: 0.0,
    ) -> None:
        self.stream = stream
        self._most = most
        self._memory, self._admit = memory, admit
        self._held, self._holding = 0, threading.Lock()
        self.heard_at = self._said_at = time.monotonic()

    def send(self, kind: int, head: dict[str, Any], *parts: bytes) -> None:
        text = json.dumps(head | {"parts": [len(part) for part in parts]}).encode()
        if len(text) > MAX_HEAD_BYTES:
            raise OversizedHead(f"A head holds {MAX_HEAD_BYTES} bytes at most, this one has {len(text)}.")
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        tail = data[:MAX_CHUNK_BYTES]
        with self.stream.sending:
            self._send_frame(kind, text, tail)
            if len(data) > MAX_CHUNK_BYTES:
                self.send_chunks(data[MAX_CHUNK_BYTES:])

    def send_chunks(self, data: bytes) -> None:
        view = memoryview(data)
        for start in range(0, len(view), MAX_CHUNK_BYTES):
            self._send_frame(CHUNK, b"", view[start : start + MAX_CHUNK_BYTES])

    def ping_when_due(self) -> float:
        """Say that this side is there when it has said nothing for long. Returns when it will be time to say so again."""
        due = self._said_at + PING_EVERY_S
        if time.monotonic() < due:
            return due
        if self.stream.sending.acquire(blocking=False):  # else something is being sent, which says it as well
            try:
                self._send_frame(PING, b"", b"")
            finally:
                self.stream.sending.release()
        return time.monotonic() + PING_EVERY_S

    def receive(self, within_s: float) -> Message:
        """The next message that is no ping."""
        deadline = time.monotonic() + within_s
        while True:
            message = self.receive_until(deadline)
            if message is None:
                raise PeerSilent("It says nothing.")
            if message.kind != PING:
                return message

    def receive_until(self, deadline: float) -> Message | None:
        """The next message, pings as well; None when none has begun by then."""
        if not self.stream.wait_for_data(deadline):
            return None
        kind, head_size, tail_size = self._read_header()
        deadline = time.monotonic() + MESSAGE_S
        if kind in (PING, CHUNK) and (head_size or tail_size):
            raise WireError("A ping holds nothing, and a chunk belongs to a message.")
        head = _read_head(self.stream.read(head_size, deadline)) if head_size else {}
        sizes = _take_sizes(head, self._most)
        total = sum(sizes)
        if tail_size != min(total, MAX_CHUNK_BYTES):
            raise WireError("A frame does not hold what its head says.")
        if kind == REQUEST and not self._make_room(head, tail_size, total):
            return Message(kind, head, fits=False)
        data = self.stream.read(tail_size, time.monotonic() + MESSAGE_S)
        if total > tail_size:
            data = b"".join((data, *self.receive_chunks(total - tail_size)))
        return Message(kind, head, tuple(_cut(data, sizes)))

    def _make_room(self, head: dict[str, Any], tail_size: int, total: int) -> bool:
        """Memory for the parts of a request. Where it is not taken, what was sent is read, so that the refusal is heard."""
        fits = False
        try:
            fits = self.hold(total, within_s=self._admit(head))
        finally:
            if not fits:
                self.stream.read(tail_size, time.monotonic() + MESSAGE_S)
                for _ in self.receive_chunks(total - tail_size):
                    pass
        return fits

    def release_request(self) -> None:
        """Nothing of the last request is kept any more."""
        self.hold(0)

    def hold(self, wanted: int, *, within_s: float = 0.0) -> bool:
        """Take memory for so many bytes in place of what is held. False when there is none by then; the other side hears meanwhile
        that this one is there.
        """
        if self._memory is None:
            return True
        ends_at = time.monotonic() + within_s
        while True:
            left = max(0.0, ends_at - time.monotonic())
            with self._holding:  # the thread of a call gives back what the one that receives has taken
                fits = self._memory.exchange(self._held, wanted, within_s=min(left, ROOM_SLICE_S))
                self._held = wanted if fits else 0
            if fits or not left:
                return fits
            self.ping_when_due()

    def receive_chunks(self, size: int) -> Iterator[bytes]:
        """What follows a message in chunks."""
        while size:
            kind, head_size, tail_size = self._read_header()
            if kind == PING:
                continue
            if kind != CHUNK or head_size or not 0 < tail_size <= size:
                raise WireError("Something else came in the middle of a message.")
            yield self.stream.read(tail_size, time.monotonic() + MESSAGE_S)
            size -= tail_size

    def _read_header(self) -> tuple[int, int, int]:
        header = self.stream.read(_HEADER.size, time.monotonic() + MESSAGE_S)
        self.heard_at = time.monotonic()
        magic, version, kind, head_size, tail_size = _HEADER.unpack(header)
        if magic != _MAGIC:
            raise WireError("This is not how a worker and a sandbox host talk.")
        if version != VERSION:
            raise WireError(f"The other side speaks version {version} of the frames, this one {VERSION}.")
        if not REQUEST <= kind <= PING:
            raise WireError(f"There is no kind {kind} of frames.")
        if head_size > MAX_HEAD_BYTES:
            raise WireError(f"A head holds {MAX_HEAD_BYTES} bytes at most, this one says that it has {head_size}.")
        if tail_size > MAX_CHUNK_BYTES:
            raise WireError(f"A frame holds {MAX_CHUNK_BYTES} bytes at most, this one says that it has {tail_size}.")
        return kind, head_size, tail_size

    def _send_frame(self, kind: int, head: bytes, tail: bytes | memoryview) -> None:
        self.stream.write(b"".join((_HEADER.pack(_MAGIC, VERSION, kind, len(head), len(tail)), head, tail)))
        self._said_at = time.monotonic()


def _read_head(text: bytes) -> dict[str, Any]:
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError("A head is no JSON.") from error
    if not isinstance(head, dict):
        raise WireError("A head is no JSON object.")
    return head


def _take_sizes(head: dict[str, Any], most: int) -> list[int]:
    sizes = head.pop("parts", [])
    if (
        not isinstance(sizes, list)
        or len(sizes) > MAX_PARTS
        or not all(type(each) is int and 0 <= each <= most for each in sizes)
        or sum(sizes) > most
    ):
        raise WireError(f"The parts of a message are up to {MAX_PARTS}, of {most} bytes together.")
    return sizes


def _cut(data: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    start = 0
    for size in sizes:
        yield data[start : start + size]
        start += size
