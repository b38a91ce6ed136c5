"""What may a run reach: Grant ∩ Manifest ∩ Policy?

A :class:`Capabilities` value is a set: file trees with actions, hosts, executables, a browser, scratch bytes. The
intersection is exact, and :func:`explain` says for every element that was dropped which side dropped it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

FsItem = tuple[str, str]  # (path, action): the tree at path
NetItem = tuple[str, str, int]  # (scheme, host or *.host, port)


def _tree_meet(a: str, b: str) -> str | None:
    """The smaller of two nested trees; None when they are disjoint."""
    if PurePosixPath(a).is_relative_to(b):
        return a
    return b if PurePosixPath(b).is_relative_to(a) else None


def _host_within(host: str, pattern: str) -> bool:
    """``*.x`` holds strict subdomains of x, not x itself."""
    if host == pattern:
        return True
    return (
        pattern.startswith("*.")
        and host.removeprefix("*.") != pattern[2:]
        and host.removeprefix("*").endswith(pattern[1:])
    )


def _host_meet(a: str, b: str) -> str | None:
    if _host_within(a, b):
        return a
    return b if _host_within(b, a) else None


@dataclass(frozen=True, slots=True)
class Capabilities:
    fs: frozenset[FsItem] = frozenset()
    net: frozenset[NetItem] = frozenset()
    proc: frozenset[str] = frozenset()
    browser: bool = False
    tmp: int = 0

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Capabilities:
        fs = frozenset(
            (str(PurePosixPath(entry["path"])), action) for entry in data.get("fs", []) for action in entry["actions"]
        )
        net = frozenset(
            (entry.get("scheme", "https"), entry["host"], entry.get("port", 443)) for entry in data.get("net", [])
        )
        for path, _ in fs:
            if not path.startswith("/") or ".." in path.split("/") or path.startswith("//") or "\0" in path:
                raise ValueError(f"{path!r} is not a plain absolute path.")
        return cls(
            fs=fs,
            net=net,
            proc=frozenset(data.get("proc", [])),
            browser=bool(data.get("browser")),
            tmp=int(data.get("tmp", 0)),
        ).normal()

    def normal(self) -> Capabilities:
        """Without the elements that another element already holds: equal sets have equal normal forms."""
        fs = {
            item
            for item in self.fs
            if not any(
                other != item and other[1] == item[1] and PurePosixPath(item[0]).is_relative_to(other[0])
                for other in self.fs
            )
        }
        net = {
            item
            for item in self.net
            if not any(
                other != item and other[0] == item[0] and other[2] == item[2] and _host_within(item[1], other[1])
                for other in self.net
            )
        }
        return Capabilities(frozenset(fs), frozenset(net), self.proc, self.browser, self.tmp)

    def __and__(self, other: Capabilities) -> Capabilities:
        fs = {
            (path, a[1])
            for a in self.fs
            for b in other.fs
            if a[1] == b[1] and (path := _tree_meet(a[0], b[0])) is not None
        }
        net = {
            (a[0], host, a[2])
            for a in self.net
            for b in other.net
            if a[0] == b[0] and a[2] == b[2] and (host := _host_meet(a[1], b[1])) is not None
        }
        return Capabilities(
            frozenset(fs),
            frozenset(net),
            self.proc & other.proc,
            self.browser and other.browser,
            min(self.tmp, other.tmp),
        ).normal()

    def __le__(self, other: Capabilities) -> bool:
        return self & other == self.normal()

    def names(self) -> list[str]:
        """Every element as a short text, for people and for evidence."""
        found = [f"fs:{action}:{path}" for path, action in sorted(self.fs)]
        found += [f"net:{scheme}://{host}:{port}" for scheme, host, port in sorted(self.net)]
        found += [f"proc:{path}" for path in sorted(self.proc)]
        return found + (["browser"] if self.browser else []) + ([f"tmp:{self.tmp}"] if self.tmp else [])


def explain(asked: Capabilities, **bounds: Capabilities | None) -> list[dict[str, str]]:
    """For each element of ``asked`` that the bounds narrow or drop: the element and who dropped it. None bounds nothing."""
    return [
        {"capability": name, "dropped_by": side}
        for side, bound in bounds.items()
        if bound is not None
        for name in asked.names()
        if name not in (asked & bound).names()
    ]
