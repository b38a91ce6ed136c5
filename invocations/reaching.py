"""What is said of the connections of a run, in evidence and to people?

A fact is never taken back, so it names a host only as the capabilities name it: a host that a tool made up, below a granted
pattern or outside of every rule, is its own word and could spell out a value. The names as asked are sealed beside the logs.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from invocations.sandbox.egress.whys import Why
from toolhub.kernel.canonical import canonical, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from invocations.sandbox.base import Connection

MAX_BYTES = 8 * 1024  # in a fact, which has room for other things too


def _named(connection: Connection) -> dict[str, Any]:
    return {
        "host": connection.rule,
        "port": connection.port,
        "allowed": connection.allowed,
        "why": connection.why,
        "bytes_out": connection.bytes_out,
        "bytes_in": connection.bytes_in,
    }


def connections_data(connections: Sequence[Connection], *, known: bool = True) -> dict[str, Any]:
    """For the End fact: attempts that a rule names, of very many the first, with number and digest of all; the rest is counted.

    When they are not ``known`` it says that, instead of nothing.
    """
    if not known:
        return {"connections_known": False}
    named = [_named(each) for each in connections if each.rule]
    data: dict[str, Any] = {}
    if named:
        kept: list[dict[str, Any]] = []
        size = 0
        for each in named:
            size += len(canonical(each)) + 1
            if size > MAX_BYTES:
                data["all_connections"] = {"count": len(named), "hash": digest(named)}
                break
            kept.append(each)
        data["connections"] = kept
    if len(connections) > len(named):
        data["connections_elsewhere"] = len(connections) - len(named)
    return data


def connections_sealed(connections: Sequence[Connection]) -> list[dict[str, Any]]:
    """All of them, as they were asked for."""
    return [asdict(each) | {"addresses": list(each.addresses)} for each in connections]


def with_hosts(connections: Sequence[Connection], change: Callable[[str], str]) -> tuple[Connection, ...]:
    """The same with other words for what the tool asked for."""
    return tuple(replace(each, host=change(each.host)) for each in connections)


def remedy_of_missing(missing: Sequence[str]) -> str:
    """What to do when the sandbox cannot provide these capabilities."""
    if all(each.startswith(("net:https:", "cidr:udp:")) for each in missing):
        return (
            "Nobody sees methods inside https, and the gate carries no datagrams: allow all methods of the host, or plain http; "
            "reach addresses by tcp."
        )
    return "Use a tool that does without, or a hub whose sandbox provides it."


def why_told(why: str) -> str:
    """For people. Empty when nothing stood against it."""
    words = {
        Why.NOT_GRANTED: gettext("not granted"),
        Why.METHOD: gettext("method not granted"),
        Why.METHODS_UNSEEN: gettext("single methods of https cannot be enforced"),
        Why.PRIVATE_ADDRESS: gettext("leads to a private address"),
        Why.OTHER_NAME: gettext("TLS for another host"),
        Why.NOT_TLS: gettext("not TLS"),
        Why.BAD_TARGET: gettext("not a plain host name"),
        Why.MALFORMED: gettext("request not understood"),
        Why.TOO_LARGE: gettext("header too large"),
        Why.TOO_SLOW: gettext("too slow"),
        Why.TOO_MANY: gettext("too many connections at once"),
        Why.TOO_OFTEN: gettext("too many attempts"),
        Why.UNRESOLVED: gettext("name not resolved"),
        Why.UNREACHABLE: gettext("nobody answered"),
        Why.TOO_MUCH: gettext("cut off: too many bytes"),
        Why.CALL_ENDED: gettext("the call ended first"),
    }
    return words.get(Why(why), why) if why in set(Why) else why
