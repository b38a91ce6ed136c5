"""Egress report: what is said of the connections of a run, in evidence and to people.

A fact is never taken back, so it names a host only as the capabilities name it: a host that a tool made up, below a granted
pattern or outside of every rule, is its own word and could spell out a value. The names as asked are sealed beside the logs.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from django.utils.translation import gettext

from evidence.leaves.base import ListDigest
from evidence.leaves.call_ends import AskedService, SentFileSummary
from invocations.sandbox.egress.denial_reasons import DenialReason
from kernel.canonical import canonicalize, compute_digest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from invocations.sandbox.base import ConnectionRecord, RunOutcome, SentFile

MAX_BYTES = 8 * 1024  # in a fact, which has room for other things too


def _named(connection: ConnectionRecord) -> dict[str, Any]:
    return {
        "host": connection.rule,
        "port": connection.port,
        "allowed": connection.allowed,
        "why": connection.why,
        "bytes_out": connection.bytes_out,
        "bytes_in": connection.bytes_in,
    }


class EgressReport(NamedTuple):
    """What the End fact says of connections. ``known``: False where the gate did not say; ``elsewhere``: how many no rule names."""

    connections: list[dict[str, Any]] | None = None
    all_connections: ListDigest | None = None
    known: bool | None = None
    elsewhere: int | None = None


def build_egress_report(outcome: RunOutcome) -> EgressReport:
    """Attempts that a rule names, of very many the first, with number and digest of all; the rest is counted."""
    if not outcome.connections_known:
        return EgressReport(known=False)
    named = [_named(each) for each in outcome.connections if each.rule]
    elsewhere = len(outcome.connections) - len(named) or None
    kept: list[dict[str, Any]] = []
    size = 0
    for each in named:
        size += len(canonicalize(each)) + 1
        if size > MAX_BYTES:
            whole = ListDigest(count=len(named), hash=compute_digest(named))
            return EgressReport(kept, whole, elsewhere=elsewhere)
        kept.append(each)
    return EgressReport(kept if named else None, elsewhere=elsewhere)


def find_exchange(outcome: RunOutcome) -> ConnectionRecord | None:
    """What the gate saw of the request that the call was for: the one that left, else the last that did not. Where there was none, of
    what came before it the last; None: nobody was asked."""
    asked = [(each, each.service) for each in outcome.connections if each.service is not None]
    counted = [pair for pair in asked if pair[1].counts] or asked
    left = [each for each, service in counted if service.left]
    return next(reversed(left or [each for each, _ in counted]), None)


def summarize_sent_files(files: Sequence[SentFile]) -> SentFileSummary | None:
    """Of what the request carried: names are of those who made them, and of a type the second half may be."""
    if not files:
        return None
    return SentFileSummary(
        count=len(files),
        bytes=sum(len(each.content) for each in files),
        types=sorted({each.media_type.partition("/")[0] for each in files}),
        hash=compute_digest([[each.id, each.fingerprint] for each in files]),
    )


def describe_service(
    outcome: RunOutcome, *, unlike_document: bool = False, sent_files: Sequence[SentFile] = ()
) -> AskedService | None:
    """What the End fact says of the operation of a service; None: no service was asked, or the gate has not said."""
    exchange = find_exchange(outcome)
    if exchange is None or exchange.service is None:
        return None
    said = exchange.service
    return AskedService(
        method=said.method,
        host=exchange.host,
        path=said.path,
        left=said.left,
        complete=said.complete,
        attempts=sum(each.service is not None for each in outcome.connections),
        bytes_out=exchange.bytes_out,
        bytes_in=exchange.bytes_in,
        status=said.status or None,
        credentials=list(said.credentials) or None,
        unlike_document=unlike_document or None,
        asks=said.asks or None,
        sent_files=summarize_sent_files(sent_files) if said.left else None,
    )


def build_sealed_connections(connections: Sequence[ConnectionRecord]) -> list[dict[str, Any]]:
    """All of them, as they were asked for."""
    return [asdict(each) | {"addresses": list(each.addresses)} for each in connections]


def replace_hosts(
    connections: Sequence[ConnectionRecord], change: Callable[[str], str]
) -> tuple[ConnectionRecord, ...]:
    """The same with other words for what the tool asked for."""
    return tuple(replace(each, host=change(each.host)) for each in connections)


def suggest_remedy(missing: Sequence[str]) -> str:
    """What to do when the sandbox cannot provide these capabilities."""
    if all(each.startswith(("net:https:", "cidr:udp:")) for each in missing):
        return (
            "Nobody sees methods inside https, and the gate carries no datagrams: allow all methods of the host, or plain http; "
            "reach addresses by tcp."
        )
    return "Use a tool that does without, or a hub whose sandbox provides it."


def describe_denial_reason(why: str) -> str:
    """For people. Empty when nothing stood against it."""
    words = {
        DenialReason.NOT_GRANTED: gettext("not granted"),
        DenialReason.METHOD: gettext("method not granted"),
        DenialReason.METHODS_UNSEEN: gettext("single methods of https cannot be enforced"),
        DenialReason.PRIVATE_ADDRESS: gettext("resolves to a private address"),
        DenialReason.OTHER_NAME: gettext("TLS for another host"),
        DenialReason.NOT_TLS: gettext("not TLS"),
        DenialReason.NOT_THE_OPERATION: gettext("not the operation that was reviewed"),
        DenialReason.BAD_TARGET: gettext("not a plain host name"),
        DenialReason.MALFORMED: gettext("request not understood"),
        DenialReason.TOO_LARGE: gettext("header too large"),
        DenialReason.TOO_SLOW: gettext("too slow"),
        DenialReason.TOO_MANY: gettext("too many connections at once"),
        DenialReason.TOO_OFTEN: gettext("too many attempts"),
        DenialReason.UNRESOLVED: gettext("name not resolved"),
        DenialReason.UNREACHABLE: gettext("no answer"),
        DenialReason.UNTRUSTED: gettext("certificate not trusted"),
        DenialReason.CUT_OFF: gettext("answer cut off"),
        DenialReason.BAD_ANSWER: gettext("answer not understood"),
        DenialReason.TOO_MUCH: gettext("cut off: too many bytes"),
        DenialReason.CALL_ENDED: gettext("the call ended first"),
    }
    return words.get(DenialReason(why), why) if why in set(DenialReason) else why
