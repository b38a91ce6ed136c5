"""Service answer: what a service says to the gate, and what of it goes into the box.

Read strictly: where an answer ends is said in one way, or by the service closing TLS itself. The box gets the status, the few
headers that its interpreter reads, and the body in chunks of the gate's own, the last of which comes only when all has come.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from invocations.sandbox.egress.streams import PIECE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from invocations.sandbox.egress.streams import EgressStream

LEFT = "X-Toolhub-Left"  # in what the gate itself answers: whether a byte of the request has left

CHALLENGE = b"www-authenticate"

_BEARER = re.compile(rb"\bbearer\b", re.IGNORECASE)
_INVALID = re.compile(rb"\berror[ \t]*=[ \t]*\"?invalid_token\b", re.IGNORECASE)
_LINE = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [\t -~\x80-\xff]*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t -~\x80-\xff]*)?\r\n")
_CHUNK_LINE_BYTES = 1024
_TRAILER_BYTES = 8 * 1024
_MOST_HEADERS = 200
_MOST_INTERIM = 8


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """``length`` of the body; None: in chunks, -1: until the service ends TLS."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    length: int | None

    @property
    def refuses_token(self) -> bool:
        """RFC 6750, 3.1. Many services answer 401 to what a good token does not allow, so the status alone says nothing of it."""
        return self.status == 401 and any(name == CHALLENGE and _says_invalid(value) for name, value in self.headers)


def _says_invalid(challenge: bytes) -> bool:
    bearer = _BEARER.search(challenge)
    return bearer is not None and _INVALID.search(challenge, bearer.end()) is not None


async def read_answer_head(stream: EgressStream, *, method: str, kept: Collection[bytes], most: int) -> AnswerHead:
    """The head of the final answer, with the headers that are ``kept``. :class:`EgressDenied`."""
    for _ in range(_MOST_INTERIM):
        head = await stream.until(b"\r\n\r\n", most, otherwise=DenialReason.BAD_ANSWER, ended=DenialReason.CUT_OFF)
        found = _read(head, method, kept)
        if found.status >= 200:
            return found
        if found.status == 101:  # nobody asked for another protocol
            break
    raise EgressDenied(DenialReason.BAD_ANSWER)


def _read(head: bytes, method: str, names: Collection[bytes]) -> AnswerHead:
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None or len(lines) > _MOST_HEADERS:
        raise EgressDenied(DenialReason.BAD_ANSWER)
    kept: list[tuple[bytes, bytes]] = []
    framing: list[tuple[bytes, bytes]] = []
    for each in lines:
        found = _HEADER.fullmatch(each)
        if found is None:
            raise EgressDenied(DenialReason.BAD_ANSWER)
        name, value = found[1].lower(), found[2].strip(b" \t")
        if name in (b"content-length", b"transfer-encoding"):
            framing.append((name, value))
        elif name in names:
            kept.append((name, value))
    status = int(line[2])
    length = _length(framing, old=line[1] == b"0")
    if method == "HEAD" or status < 200 or status in (204, 304):
        length = 0
    return AnswerHead(status, tuple(kept), length)


def _length(framing: list[tuple[bytes, bytes]], *, old: bool) -> int | None:
    if not framing:
        return -1
    if len(framing) > 1:
        raise EgressDenied(DenialReason.BAD_ANSWER)
    name, value = framing[0]
    if name == b"content-length" and _LENGTH.fullmatch(value):
        return int(value)
    if name == b"transfer-encoding" and value.lower() == b"chunked" and not old:
        return None
    raise EgressDenied(DenialReason.BAD_ANSWER)


async def stream_answer(stream: EgressStream, length: int | None, *, most: int) -> AsyncIterator[bytes]:
    """The body, in pieces as they come; it ends when the body is whole. ``most`` bytes of it are taken."""
    if length is not None and length > most:
        raise EgressDenied(DenialReason.TOO_MUCH)
    if length is None:
        async for piece in _stream_chunks(stream, most):
            yield piece
        return
    taken = 0
    while taken != length:
        piece = await stream.read(min(PIECE, length - taken) if length > 0 else PIECE)
        if not piece:
            if length > 0:
                raise EgressDenied(DenialReason.CUT_OFF)
            return
        taken += len(piece)
        if taken > most:
            raise EgressDenied(DenialReason.TOO_MUCH)
        yield piece


async def _stream_chunks(stream: EgressStream, most: int) -> AsyncIterator[bytes]:
    taken = 0
    lines = 0
    while left := await _read_size(stream):
        taken += left
        lines += (
            _CHUNK_LINE_BYTES // 16
        )  # a chunk of next to nothing is charged for, so that their number is bounded too
        if taken > most or lines > most + PIECE:
            raise EgressDenied(DenialReason.TOO_MUCH)
        while left:
            piece = await stream.read(min(left, PIECE))
            if not piece:
                raise EgressDenied(DenialReason.CUT_OFF)
            left -= len(piece)
            yield piece
        if await _line(stream, 2) != b"\r\n":
            raise EgressDenied(DenialReason.BAD_ANSWER)
    size = 0
    while (line := await _line(stream, _CHUNK_LINE_BYTES)) != b"\r\n":  # fields after the body stay outside
        size += len(line)
        if size > _TRAILER_BYTES:
            raise EgressDenied(DenialReason.BAD_ANSWER)


async def _read_size(stream: EgressStream) -> int:
    found = _CHUNK.fullmatch(await _line(stream, _CHUNK_LINE_BYTES))
    if found is None:
        raise EgressDenied(DenialReason.BAD_ANSWER)
    return int(found[1], 16)


async def _line(stream: EgressStream, most: int) -> bytes:
    return await stream.until(b"\r\n", most, otherwise=DenialReason.BAD_ANSWER, ended=DenialReason.CUT_OFF)
