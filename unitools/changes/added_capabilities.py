"""Added capabilities: those of a version that the former version did not have.

A capability is had when the former entries cover it: a tree those below it, ``*.example.org`` its subdomains, a network its
parts, neighbouring port ranges what spans them. What is not understood is covered by the same text only.
"""

from __future__ import annotations

import ipaddress
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
Span = tuple[int, int]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_readable(capabilities: Any) -> bool:
    """Can every entry be told apart? (Whether it makes sense is the registry's to check.)"""
    return isinstance(capabilities, dict) and all(
        isinstance(entries, list) for part, entries in capabilities.items() if part not in ("browser", "tmp")
    )


def find_uncovered(wanted: dict[str, Any], by: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The entries of ``wanted`` that ``by`` does not hold as a whole, each with its pointer."""
    for part, entries in sorted(wanted.items()):
        had = by.get(part)
        if not isinstance(entries, list):
            if not _holds_whole(part, had, entries):
                yield f"/{part}", entries
            continue
        former = had if isinstance(had, list) else []
        covers = {"fs": _fs, "net": _net, "cidr": _cidr, "proc": _proc}.get(part, _same)
        for index, entry in enumerate(entries):
            if (
                had is not True
                and not any(_same(entry, [each]) for each in former)
                and not _tried(covers, entry, former)
            ):
                yield f"/{part}/{index}", entry


def _tried(covers: Any, entry: Any, former: list[Any]) -> bool:
    try:
        return bool(covers(entry, former))
    except (KeyError, TypeError, ValueError, AttributeError):  # an entry of another form than is known here
        return False


def _holds_whole(part: str, had: Any, wanted: Any) -> bool:
    """``browser`` and ``tmp``: yes or no, and a number."""
    if not wanted:
        return True
    if part == "tmp" and all(type(each) is int for each in (had, wanted)):
        return bool(had >= wanted)
    return bool(type(had) is type(wanted) and had == wanted)


def _same(entry: Any, former: list[Any]) -> bool:
    return any(json.dumps(entry, sort_keys=True) == json.dumps(each, sort_keys=True) for each in former)


def _known(entry: dict[str, Any], *names: str) -> dict[str, Any]:
    """The entry, when it says nothing else: what has a meaning that is not known here is not covered."""
    if set(entry) - set(names):
        raise ValueError
    return entry


# Files.


def _path(entry: dict[str, Any]) -> tuple[list[str], bool]:
    parts = entry["path"].rstrip("/").split("/")[1:]
    if not entry["path"].startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise ValueError
    kind = entry.get("kind", "tree")
    if kind not in ("tree", "file"):
        raise ValueError
    return parts, kind == "tree"


def _fs(entry: Any, former: list[Any]) -> bool:
    path, is_tree = _path(_known(entry, "path", "actions", "kind"))
    held: set[str] = set()
    for each in former:
        other, other_is_tree = _path(_known(each, "path", "actions", "kind"))
        if (other_is_tree and path[: len(other)] == other) or (not is_tree and path == other):
            held |= set(each["actions"])
    return set(entry["actions"]) <= held


# Networks.


def host_within(host: str, pattern: str) -> bool:
    """``*.x`` holds strict subdomains of x; ``*`` every name."""
    if pattern in ("*", host):
        return True
    return (
        pattern.startswith("*.")
        and host.removeprefix("*").endswith(pattern[1:])
        and host.removeprefix("*.") != pattern[2:]
    )


def _spans(entry: dict[str, Any]) -> list[Span]:
    found = []
    for text in entry.get("ports", [entry.get("port", 443)]):
        low, _, high = str(text).partition("-")
        if int(low) > int(high or low):
            raise ValueError
        found.append((int(low), int(high or low)))
    return found


def _all_ports(wanted: list[Span], held: list[Span]) -> bool:
    """Do the held ranges together hold each wanted one?"""
    joined: list[Span] = []
    for low, high in sorted(held):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(joined[-1][1], high)
        else:
            joined.append((low, high))
    return all(any(a <= low and high <= b for a, b in joined) for low, high in wanted)


def _net(entry: Any, former: list[Any]) -> bool:
    names = ("host", "scheme", "port", "ports", "methods")
    host, scheme = _known(entry, *names)["host"], entry.get("scheme", "https")
    near = [
        each
        for each in former
        if host_within(host, _known(each, *names)["host"]) and each.get("scheme", "https") == scheme
    ]
    return all(
        _all_ports(
            _spans(entry), [span for each in near if method in each.get("methods", METHODS) for span in _spans(each)]
        )
        for method in entry.get("methods", METHODS)
    )


def _network(entry: dict[str, Any]) -> Network:
    return ipaddress.ip_network(_known(entry, "cidr", "scheme", "ports")["cidr"], strict=False)


def _cidr(entry: Any, former: list[Any]) -> bool:
    network, scheme = _network(entry), entry.get("scheme", "tcp")
    held = [
        span
        for each in former
        if each.get("scheme", "tcp") == scheme and _is_part(network, _network(each))
        for span in _spans(each)
    ]
    return _all_ports(_spans(entry), held)


def _is_part(network: Network, other: Network) -> bool:
    if isinstance(network, ipaddress.IPv4Network) and isinstance(other, ipaddress.IPv4Network):
        return network.subnet_of(other)
    if isinstance(network, ipaddress.IPv6Network) and isinstance(other, ipaddress.IPv6Network):
        return network.subnet_of(other)
    return False


# Programs.


def _proc(entry: Any, former: list[Any]) -> bool:
    return isinstance(entry, str) and "*" in former
