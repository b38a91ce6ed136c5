"""Client hello: the host that a TLS connection asks for.

Reads the ClientHello (RFC 8446, 4.1.2) that every connection begins with, whole and strictly: what a server could read another
way is refused. Nothing is decrypted.
"""

from __future__ import annotations

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME, _HOST_NAME = 22, 1, 0, 0
_RECORD_HEADER, _MESSAGE_HEADER = 5, 4
_MAX_RECORD = 1 << 14
_MOST_RECORDS, _MOST_EXTENSIONS = 64, 128  # libraries send one, and some twenty
_FIXED = 2 + 32  # legacy version and random

# What a server says to a name that it does not serve: fatal(2), unrecognized_name(112).
UNKNOWN_NAME = bytes((21, 3, 3, 0, 2, 2, 112))


class NotTls(Exception):
    """These bytes do not begin a TLS connection."""


class _Bytes:
    """Bytes that are taken from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.at : self.at + size]
        if len(piece) < size:
            raise NotTls
        self.at += size
        return piece

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        """Bytes with their length, of ``size`` bytes, before them."""
        return self.take(self.number(size))

    @property
    def left(self) -> bool:
        return self.at < len(self.data)


def read_server_name(data: bytes) -> str | None:
    """The name of the first ClientHello, empty when it names none; None while more bytes are needed."""
    message = _message(data)
    if message is None:
        return None
    hello = _Bytes(message)
    hello.take(_FIXED)
    hello.vector(1)  # session
    hello.vector(2)  # ciphers
    hello.vector(1)  # compression
    if not hello.left:
        return ""
    extensions = _Bytes(hello.vector(2))
    if hello.left:
        raise NotTls
    names: list[bytes] = []
    for _ in range(_MOST_EXTENSIONS):
        if not extensions.left:
            break
        kind, content = extensions.number(2), extensions.vector(2)
        if kind == _SERVER_NAME:
            names += _names(content)
    if extensions.left or len(names) > 1:
        raise NotTls
    try:
        return names[0].decode("ascii").lower() if names else ""
    except UnicodeDecodeError as error:
        raise NotTls from error


def _names(content: bytes) -> list[bytes]:
    outer = _Bytes(content)
    entries = _Bytes(outer.vector(2))
    if outer.left:
        raise NotTls
    names = []
    while entries.left:
        if entries.number(1) != _HOST_NAME:
            raise NotTls
        names.append(entries.vector(2))
    if not names:
        raise NotTls
    return names


def _message(data: bytes) -> bytes | None:
    """The body of the first handshake message, put together from the records that it is spread over."""
    handshake = bytearray()
    at = 0
    for _ in range(_MOST_RECORDS):
        if at >= len(data):
            return None
        if data[at] != _HANDSHAKE or (at + 1 < len(data) and data[at + 1] != 3):
            raise NotTls
        if len(data) < at + _RECORD_HEADER:
            return None
        size = int.from_bytes(data[at + 3 : at + 5], "big")
        if not 1 <= size <= _MAX_RECORD:
            raise NotTls
        at += _RECORD_HEADER
        handshake += data[at : at + size]
        at += size
        if handshake[:1] and handshake[0] != _CLIENT_HELLO:
            raise NotTls
        if len(handshake) >= _MESSAGE_HEADER:
            end = _MESSAGE_HEADER + int.from_bytes(handshake[1:_MESSAGE_HEADER], "big")
            if end > _MAX_RECORD or len(handshake) > end:
                raise NotTls
            if len(handshake) == end:
                return bytes(handshake[_MESSAGE_HEADER:])
    raise NotTls
