"""Algebra: what a run may reach, as a value that meets and compares exactly.

A :class:`Capabilities` is a product: files, hosts, addresses, browser, programs, secrets, and ceilings on what a run may use up.
Part by part it forms a lattice, from :data:`BOTTOM` to :data:`TOP`; ``a & b`` is what both allow, ``a <= b`` says that ``b`` allows
all that ``a`` allows, and ``==`` is equality of meaning, because every part is kept in its one normal form.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from unitools.capabilities import wire
from unitools.capabilities.forest import BROWSERS, HOSTS, PATHS, RANGES, Browsers, Forest, Hosts, Paths, Ranges
from unitools.capabilities.nodes import parse_host, parse_path, parse_range
from unitools.capabilities.values import ANY_PROTOCOL, ANY_REACH, Actions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unitools.manifest import Manifest

NameSet = frozenset[str]
EVERY: NameSet = frozenset({wire.ANY})  # the set of all names; it is never mixed with single ones


def _names_meet(a: NameSet, b: NameSet) -> NameSet:
    if a == EVERY:
        return b
    return a if b == EVERY else a & b


def _names_within(a: NameSet, b: NameSet) -> bool:
    return b == EVERY or (a != EVERY and a <= b)


def _ceilings_meet(a: Mapping[str, int], b: Mapping[str, int]) -> dict[str, int]:
    return {name: min(each[name] for each in (a, b) if name in each) for name in {**a, **b}}


@dataclass(frozen=True, eq=False)
class Capabilities:
    """``ceilings`` holds the bounded ones of :data:`wire.CEILINGS` only; one that is not named has no bound."""

    fs: Paths = field(default_factory=lambda: Forest(PATHS))
    net: Hosts = field(default_factory=lambda: Forest(HOSTS))
    cidr: Ranges = field(default_factory=lambda: Forest(RANGES))
    browser: Browsers = field(default_factory=lambda: Forest(BROWSERS))
    proc: NameSet = frozenset()
    secrets: NameSet = frozenset()
    ceilings: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: Any) -> Capabilities:
        """A manifest's ``capabilities``, or bounds of a grant or a policy in the same form.

        What is not named is denied; a ceiling under ``limits`` that is not named has no bound. ``ValueError`` with a sentence
        when it cannot be read, also for a name that is not known: a bound that was ignored would be none.
        """
        read = wire.read_capabilities(data)
        return cls(
            fs=Forest(PATHS, read.fs),
            net=Forest(HOSTS, read.net),
            cidr=Forest(RANGES, read.cidr),
            browser=Forest(BROWSERS, read.browser),
            proc=EVERY if wire.ANY in read.proc else frozenset(read.proc),
            secrets=EVERY if wire.ANY in read.secrets else frozenset(read.secrets),
            ceilings=read.ceilings,
        )

    @classmethod
    def of_manifest(cls, manifest: Manifest) -> Capabilities:
        """What a version asks for: its capabilities, the secrets it names, and its limits as ceilings."""
        named: tuple[str, ...] = ("max_bytes_in", "max_bytes_out", "memory_bytes", "depth", "files")
        if manifest.limit("artifacts"):
            named += ("artifacts", "artifact_bytes")
        limits = {name: manifest.limit(name) for name in named}
        limits["timeout_ms"] = manifest.timeout_ms
        secrets = [secret["name"] for secret in manifest.secrets]
        return cls.from_json(manifest.capabilities | {"secrets": secrets, "limits": limits})

    def to_json(self) -> dict[str, Any]:
        """The canonical form: equal capabilities have equal documents, and :meth:`from_json` reads it back."""
        return wire.write_capabilities(self)

    def __and__(self, other: Capabilities) -> Capabilities:
        return Capabilities(
            fs=self.fs.meet(other.fs),
            net=self.net.meet(other.net),
            cidr=self.cidr.meet(other.cidr),
            browser=self.browser.meet(other.browser),
            proc=_names_meet(self.proc, other.proc),
            secrets=_names_meet(self.secrets, other.secrets),
            ceilings=_ceilings_meet(self.ceilings, other.ceilings),
        )

    def __le__(self, other: Capabilities) -> bool:
        return (
            self.fs <= other.fs
            and self.net <= other.net
            and self.cidr <= other.cidr
            and self.browser <= other.browser
            and _names_within(self.proc, other.proc)
            and _names_within(self.secrets, other.secrets)
            and all(name in self.ceilings and self.ceilings[name] <= most for name, most in other.ceilings.items())
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Capabilities) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((*self._parts()[:-1], frozenset(self.ceilings.items())))

    def _parts(self) -> tuple[object, ...]:
        return (self.fs, self.net, self.cidr, self.browser, self.proc, self.secrets, self.ceilings)

    def replaced(self, **parts: Any) -> Capabilities:
        """The same with other parts."""
        mine = {each.name: getattr(self, each.name) for each in fields(self)}
        return Capabilities(**(mine | parts))

    @property
    def tmp(self) -> int:
        """Bytes of scratch space; for want of a bound, the most that a manifest can ask for."""
        return min(self.ceilings.get(wire.TMP, wire.MAX_TMP), wire.MAX_TMP)

    def domains(self) -> tuple[str, ...]:
        """The parts that hold anything, beside scratch space."""
        return tuple(name for name in wire.DOMAINS if getattr(self, name))

    def names(self) -> list[str]:
        """Every element as a short text, for people and for evidence."""
        return wire.list_capability_names(self)

    def allows_path(self, path: str, action: str) -> bool:
        return action in self.fs.at(parse_path(path, tree=False)).words

    def allows_host(self, host: str, *, port: int = 443, scheme: str = "https", method: str = "GET") -> bool:
        """A name. Where it leads is another question: see :meth:`allows_address`."""
        return self.net.at(parse_host(host)).has(scheme, method, port)

    def allows_address(self, address: str, *, port: int, protocol: str = "tcp") -> bool:
        """An address that a tool names itself. A rule about names never allows one."""
        return self.cidr.at(parse_range(str(ipaddress.ip_address(address)))).has(protocol, "", port)

    def allows_browser(self, host: str, action: str) -> bool:
        """A browser goes only where ``browser`` and ``net`` both let it."""
        node = parse_host(host)
        return action in self.browser.at(node).words and bool(self.net.at(node))


BOTTOM = Capabilities(ceilings=dict.fromkeys(wire.CEILINGS, 0))
TOP = Capabilities(
    fs=Forest(PATHS, [(((), True), Actions(wire.FILE_ACTIONS))]),
    net=Forest(HOSTS, [(((), True), ANY_REACH)]),
    cidr=Forest(RANGES, [((4, 0, 0), ANY_PROTOCOL), ((6, 0, 0), ANY_PROTOCOL)]),
    browser=Forest(BROWSERS, [(((), True), Actions(wire.BROWSER_ACTIONS))]),
    proc=EVERY,
    secrets=EVERY,
)


@lru_cache(maxsize=4096)
def meet_cached(*operands: Capabilities) -> Capabilities:
    """The meet of all of them; of the same values it is computed once a process."""
    met = TOP
    for operand in operands:
        met = met & operand
    return met
