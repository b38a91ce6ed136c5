"""Nodes: the places that a capability can name, and which place covers which.

Paths, host patterns and address ranges each form a forest: two nodes are nested or disjoint, never half of each. A node is
parsed once, strictly: what could be read in two ways is refused, never resolved.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

import idna

if TYPE_CHECKING:
    from collections.abc import Iterator

PathNode = tuple[tuple[str, ...], bool]  # (components, tree)
HostNode = tuple[tuple[str, ...], bool]  # (labels from the right, wildcard)
RangeNode = tuple[int, int, int]  # (version, first address, prefix length)

MAX_PATH = 400
MAX_HOST = 253
MAX_RANGE = 49
_BITS = {4: 32, 6: 128}
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")


def _quoted(text: object) -> str:
    return repr(str(text)[:80])


# ── files


def parse_path(text: object, *, tree: bool) -> PathNode:
    """``/a/b`` by components; with ``tree`` the folder and everything below it, without it that one file."""
    if not isinstance(text, str) or not text.startswith("/") or text.startswith("//") or len(text) > MAX_PATH:
        raise ValueError(f"{_quoted(text)} is not a plain absolute path.")
    if _CONTROL.search(text) or "*" in text:
        raise ValueError(f"{_quoted(text)} is not a plain absolute path: it has a control character or a wildcard.")
    parts = tuple(part for part in text.split("/") if part not in ("", "."))
    if ".." in parts:
        raise ValueError(f"{_quoted(text)} is not a plain absolute path: `..` is refused, never resolved.")
    if not tree and (not parts or text.endswith(("/", "/."))):
        raise ValueError(f"{_quoted(text)} is not a plain absolute path of one file.")
    return parts, tree


def show_path(node: PathNode) -> str:
    return "/" + "/".join(node[0])


def path_line(node: PathNode, _depths: tuple[int, ...]) -> Iterator[PathNode]:
    """The node and what covers it, from itself to the widest. The tree at a file's own path covers the file."""
    parts, tree = node
    yield node
    if not tree:
        yield parts, True
    for length in range(len(parts) - 1, -1, -1):
        yield parts[:length], True


def path_depth(node: PathNode) -> int:
    return 2 * len(node[0]) + (0 if node[1] else 1)


# ── hosts


def parse_host(text: object) -> HostNode:
    """``a.example.org``, ``*.example.org`` (strict subdomains, of any depth) or ``*`` (every name). Never an address."""
    if not isinstance(text, str) or not text or len(text) > 2 * MAX_HOST:
        raise ValueError(f"{_quoted(text)} is not a host name.")
    if text == "*":
        return (), True
    wild = text.startswith("*.")
    name = (text[2:] if wild else text).removesuffix(".")
    if "*" in name:
        raise ValueError(
            f"{_quoted(text)} is not a host pattern: `*` stands only for the whole beginning, as in `*.example.org`."
        )
    if name.isascii():
        name = name.lower()
    else:
        try:
            name = idna.encode(name, uts46=True, std3_rules=True).decode().removesuffix(".")
        except idna.IDNAError as error:
            raise ValueError(f"{_quoted(text)} is not a host name: {error}") from error
    labels = tuple(reversed(name.split(".")))
    if len(name) + 2 * wild > MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(f"{_quoted(text)} is not a host name.")
    if _NUMBER.fullmatch(labels[0]):
        raise ValueError(f"{_quoted(text)} is an address, not a name: addresses are asked for under `cidr`.")
    return labels, wild


def show_host(node: HostNode) -> str:
    labels, wild = node
    name = ".".join(reversed(labels))
    return (f"*.{name}" if name else "*") if wild else name


def host_line(node: HostNode, _depths: tuple[int, ...]) -> Iterator[HostNode]:
    """``*.a.b`` does not cover ``a.b``, as in a content security policy."""
    labels, _ = node
    yield node
    for length in range(len(labels) - 1, -1, -1):
        yield labels[:length], True


def host_depth(node: HostNode) -> int:
    return len(node[0])


# ── addresses


def parse_range(text: object) -> RangeNode:
    """``10.0.0.0/8``, ``2001:db8::/32`` or one address. An IPv4 address written as IPv6 is the IPv4 address."""
    if not isinstance(text, str) or len(text) > MAX_RANGE or "%" in text:
        raise ValueError(f"{_quoted(text)} is not a range of addresses, such as 10.0.0.0/8.")
    try:
        network = ipaddress.ip_network(text, strict=True)
    except ValueError as error:
        raise ValueError(f"{_quoted(text)} is not a range of addresses, such as 10.0.0.0/8: {error}") from error
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        return 4, int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96
    return network.version, int(network.network_address), network.prefixlen


def show_range(node: RangeNode) -> str:
    version, first, length = node
    address = ipaddress.IPv4Address(first) if version == 4 else ipaddress.IPv6Address(first)
    return f"{address}/{length}"


def range_line(node: RangeNode, depths: tuple[int, ...]) -> Iterator[RangeNode]:
    """Only the lengths in ``depths`` are tried: 128 of them would be slow."""
    version, first, own = node
    bits = _BITS[version]
    yield node
    for length in depths:
        if length < own:
            yield version, first >> (bits - length) << (bits - length), length


def range_depth(node: RangeNode) -> int:
    return node[2]


def range_sibling(node: RangeNode) -> tuple[RangeNode, RangeNode] | None:
    """(the other half, the range that both halves make); None for the whole of an address family."""
    version, first, length = node
    if not length:
        return None
    bit = 1 << (_BITS[version] - length)
    return (version, first ^ bit, length), (version, first & ~bit, length - 1)
