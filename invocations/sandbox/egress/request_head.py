"""Request head: what a request to the gate asks for.

Two forms are read: ``CONNECT host:port`` for everything that is encrypted, and ``GET http://host/path`` for plain http. A reading
that another program could understand differently is refused, never repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from invocations.sandbox.egress.denial_reasons import DenialReason, EgressDenied
from unitools.capabilities.nodes import parse_host
from unitools.capabilities.values import METHODS

CONNECT = "CONNECT"

_LINE = re.compile(rb"([A-Z]{1,10}) ([!-~]+) HTTP/1\.[01]")
_ABSOLUTE = re.compile(rb"http://([^/?#]{1,300})([/?][!-~]*)?", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9.-]{1,253})(?::([0-9]{1,5}))?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)")
_FOUR_NUMBERS = re.compile(r"[0-9]+(\.[0-9]+){3}")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_MOST_HEADERS = 200
_HOP_BY_HOP = frozenset({b"connection", b"host", b"keep-alive", b"te", b"trailer", b"upgrade"})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """``host`` is in the one form that evidence shows; ``address`` is set when a tool named one itself."""

    host: str
    port: int
    address: IPv4Address | IPv6Address | None = None


@dataclass(frozen=True, slots=True)
class RequestHead:
    """``length`` of the body; None when it comes in chunks. ``headers`` are those that travel on."""

    method: str
    target: RequestTarget
    path: bytes = b"/"
    headers: tuple[tuple[bytes, bytes], ...] = ()
    length: int | None = 0

    def head(self) -> bytes:
        """What is sent on: for this host, and for one request only."""
        target = self.target
        host = f"[{target.host}]" if isinstance(target.address, IPv6Address) else target.host
        port = "" if target.port == 80 else f":{target.port}"
        lines = [
            self.method.encode() + b" " + self.path + b" HTTP/1.1",
            f"Host: {host}{port}".encode(),
            *(name + b": " + value for name, value in self.headers),
            b"Connection: close",
        ]
        if self.length is None:
            lines.append(b"Transfer-Encoding: chunked")
        elif self.length:
            lines.append(f"Content-Length: {self.length}".encode())
        return b"\r\n".join([*lines, b"", b""])


def read_target(authority: str, *, port: int | None) -> RequestTarget:
    """``port``: the usual one, where none needs to be named."""
    try:
        return _target(authority, port)
    except ValueError as error:
        raise EgressDenied(DenialReason.BAD_TARGET, asked=authority) from error


def _target(authority: str, usual: int | None) -> RequestTarget:
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise ValueError
    name, port = found[1].lower(), int(found[2] or usual or 0)
    if not 1 <= port <= 65535:
        raise ValueError
    if name.startswith("["):
        written = IPv6Address(name[1:-1])
        address = written.ipv4_mapped or written
        return RequestTarget(str(address), port, address)
    if _FOUR_NUMBERS.fullmatch(name):
        return RequestTarget(name, port, IPv4Address(name))  # which refuses every other way to write one
    if name.endswith("."):
        raise ValueError  # the same name to the rules, and another one to who checks certificates
    parse_host(name)
    return RequestTarget(name, port)


def read_head(head: bytes) -> RequestHead:
    """``head`` ends with the empty line."""
    line, _, rest = head.partition(b"\r\n")
    found = _LINE.fullmatch(line)
    if found is None:
        raise EgressDenied(DenialReason.MALFORMED)
    method = found[1].decode()
    if method == CONNECT:
        return RequestHead(CONNECT, read_target(found[2].decode(), port=None))
    absolute = _ABSOLUTE.fullmatch(found[2])
    if absolute is None or method not in METHODS:
        raise EgressDenied(
            DenialReason.MALFORMED if method not in METHODS else DenialReason.BAD_TARGET, asked=found[2].decode()
        )
    path = absolute[2] or b"/"
    target = read_target(absolute[1].decode(), port=80)
    headers, length = _headers(rest, old=line.endswith(b"1.0"))
    return RequestHead(method, target, path if path.startswith(b"/") else b"/" + path, headers, length)


def _headers(rest: bytes, *, old: bool) -> tuple[tuple[tuple[bytes, bytes], ...], int | None]:
    kept: list[tuple[bytes, bytes]] = []
    framing: list[tuple[bytes, bytes]] = []
    lines = rest.removesuffix(b"\r\n\r\n").split(b"\r\n") if rest != b"\r\n" else []
    if len(lines) > _MOST_HEADERS:
        raise EgressDenied(DenialReason.TOO_LARGE)
    for line in lines:
        found = _HEADER.fullmatch(line)
        if found is None:
            raise EgressDenied(DenialReason.MALFORMED)
        name, value = found[1].lower(), found[2].strip(b" \t")
        if name in _FRAMING:
            framing.append((name, value))
        elif name not in _HOP_BY_HOP and not name.startswith(b"proxy-"):
            kept.append((found[1], value))
    return tuple(kept), _length(framing, old=old)


def _length(framing: list[tuple[bytes, bytes]], *, old: bool) -> int | None:
    """One word on where the body ends, or none: two are how a second request hides in a first one."""
    if not framing:
        return 0
    if len(framing) > 1:
        raise EgressDenied(DenialReason.MALFORMED)
    name, value = framing[0]
    if name == b"content-length" and _LENGTH.fullmatch(value):
        return int(value)
    if name == b"transfer-encoding" and value.lower() == b"chunked" and not old:
        return None
    raise EgressDenied(DenialReason.MALFORMED)
