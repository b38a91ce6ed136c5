"""Explanation: which operand of a meet dropped or narrowed each element that was asked for."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from unitools.capabilities import wire
from unitools.capabilities.algebra import EVERY, TOP, Capabilities
from unitools.capabilities.forest import HOSTS, PATHS, RANGES, Forest
from unitools.capabilities.nodes import parse_host, parse_path, parse_range
from unitools.capabilities.values import ANY_PROTOCOL, ANY_REACH, Actions, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

N = TypeVar("N")
V = TypeVar("V", bound=Value)

# What is left of a dry run's capabilities, whatever was granted: nothing that changes anything (ADR 0009).
HARMLESS = Capabilities(fs=Forest(PATHS, [(((), True), Actions({"read", "list"}))]), ceilings=TOP.ceilings)
DRY_RUN = "dry_run"
_CEILINGS = tuple(f"{'tmp' if name == wire.TMP else name}:" for name in wire.CEILINGS)

Entry = tuple[str, str, str]  # (capability, dropped_by, kept)


def _lost_nodes(
    asked: Forest[N, V], bound: Forest[N, V], names: Callable[[N, V], list[str]]
) -> Iterable[tuple[str, str]]:
    for node, own in asked.own():
        lost = own.minus(bound.at(node))
        said = names(node, lost)
        for name, piece in zip(said, [lost] if len(said) == 1 else lost.pieces(), strict=True):
            kept = [text for each, value in bound.below(node) for text in names(each, value.meet(piece))]
            yield name, ", ".join(sorted(kept))


def _lost_names(asked: frozenset[str], bound: frozenset[str], prefix: str) -> Iterable[tuple[str, str]]:
    if bound == EVERY:
        return
    kept = ", ".join(f"{prefix}:{name}" for name in sorted(bound)) if asked == EVERY else ""
    for name in sorted(asked - bound):
        yield f"{prefix}:{name}", kept


def _lost(asked: Capabilities, bound: Capabilities) -> Iterable[tuple[str, str]]:
    yield from _lost_nodes(asked.fs, bound.fs, wire.path_names)
    yield from _lost_nodes(asked.net, bound.net, wire.host_names)
    yield from _lost_nodes(asked.cidr, bound.cidr, wire.range_names)
    yield from _lost_nodes(asked.browser, bound.browser, wire.browser_names)
    yield from _lost_names(asked.proc, bound.proc, "proc")
    yield from _lost_names(asked.secrets, bound.secrets, "secret")
    for name, most in sorted(bound.ceilings.items()):
        wanted = asked.ceilings.get(name)
        if wanted is not None and wanted > most:
            yield wire.ceiling_name(name, wanted), wire.ceiling_name(name, most)


def _as_json(entries: Iterable[Entry]) -> list[dict[str, str]]:
    return [{"capability": name, "dropped_by": side} | ({"kept": kept} if kept else {}) for name, side, kept in entries]


def _explained(asked: Capabilities, bounds: Iterable[tuple[str, Capabilities | None]]) -> list[Entry]:
    return [
        (name, side, kept)
        for side, bound in bounds
        if bound is not None and not asked <= bound
        for name, kept in _lost(asked, bound)
    ]


def explain(asked: Capabilities, **bounds: Capabilities | None) -> list[dict[str, str]]:
    """For each element of ``asked`` that a bound narrows or drops: what is lost, ``dropped_by`` whom, and ``kept`` when
    something of it is left. A bound that is None bounds nothing."""
    return _as_json(_explained(asked, bounds.items()))


@lru_cache(maxsize=4096)
def _effective(
    asked: Capabilities, bounds: tuple[tuple[str, Capabilities | None], ...], dry_run: bool
) -> tuple[Capabilities, tuple[Entry, ...]]:
    entries = _explained(asked, bounds)
    met = asked
    for _, bound in bounds:
        met = met if bound is None else met & bound
    if dry_run:
        entries += _explained(met, [(DRY_RUN, HARMLESS)])
        met = met & HARMLESS
    return met, tuple(entries)


def effective(
    asked: Capabilities,
    *,
    grant: Capabilities | None = None,
    policy: Capabilities | None = None,
    installation: Capabilities | None = None,
    dry_run: bool = False,
) -> tuple[Capabilities, list[dict[str, str]]]:
    """What a call may reach, and who took away the rest. The same values are met once a process."""
    bounds = (("grant", grant), ("policy", policy), ("installation", installation))
    met, entries = _effective(asked, bounds, dry_run)
    return met, _as_json(entries)


def list_missing_capabilities(explanation: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """The entries for want of which a call can only fail. A lower ceiling is none of them, and a dry run is meant to have less."""
    return [
        entry
        for entry in explanation
        if entry["dropped_by"] != DRY_RUN and not entry["capability"].startswith(_CEILINGS)
    ]


def _is_range(text: object) -> bool:
    try:
        ipaddress.ip_network(str(text), strict=False)
    except ValueError:
        return False
    return True


def build_allow_list_bound(hosts: Sequence[Any] | None, paths: Sequence[Any] | None) -> Capabilities | None:
    """An installation's allow-lists as a bound. None bounds nothing; an empty list allows nothing.

    An entry of ``hosts`` is a host pattern, an address or a range of addresses; one of ``paths`` is a tree. ``ValueError`` when
    one cannot be read.
    """
    if hosts is None and paths is None:
        return None
    bound = TOP
    if hosts is not None:
        names = [(parse_host(host), ANY_REACH) for host in hosts if not _is_range(host)]
        ranges = [(parse_range(host), ANY_PROTOCOL) for host in hosts if _is_range(host)]
        bound = bound.replaced(net=Forest(HOSTS, names), cidr=Forest(RANGES, ranges))
    if paths is not None:
        trees = [(parse_path(path, tree=True), Actions(wire.FILE_ACTIONS)) for path in paths]
        bound = bound.replaced(fs=Forest(PATHS, trees))
    return bound
