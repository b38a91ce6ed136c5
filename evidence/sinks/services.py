"""Sinks: those that a tenant has, and what people may do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction

from evidence import services as evidence
from evidence.deliveries import signing_secrets
from evidence.deliveries.signed_requests import check_receiver
from evidence.deliveries.signing_secrets import OVERLAP, add_secret
from evidence.kinds import Kind
from evidence.leaves.deliveries import MadeSink, RefusedSink, RotatedSecret, SinkCursor, StoppedSink
from evidence.models import EventSink, SinkChannel, SinkMode, SinkState
from evidence.sinks.cursor import load_log_size
from kernel.database.connections import database_time
from kernel.problems import Conflict, SchemaInvalid, StateUnfit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta
    from uuid import UUID

    from evidence.leaves.base import LeafData
    from kernel.principal import Principal

MAX_SINKS = 20  # of one tenant in use
MAX_FILE_MB = 4096


@transaction.atomic
def make_sink(
    *,
    name: str,
    channel: str,
    url: str = "",
    mode: str = SinkMode.STRUCTURED,
    kinds: Iterable[str] = (),
    max_mb: int = 64,
    from_beginning: bool = False,
    by: Principal,
) -> tuple[EventSink, str]:
    """A new sink, and the secret that messages to a server are signed with, shown this once (empty for files)."""
    wanted = sorted(set(kinds))
    _check_sink(channel=channel, url=url, kinds=wanted)
    if EventSink.objects.filter(tenant_id=by.tenant_id).exclude(state=SinkState.ENDED).count() >= MAX_SINKS:
        raise Conflict(f"A tenant has at most {MAX_SINKS} sinks.", remedy="End one that nobody needs.")
    try:
        with transaction.atomic():
            sink = EventSink.objects.create(
                tenant_id=by.tenant_id,
                name=name,
                channel=channel,
                url=url,
                mode=mode,
                kinds=wanted,
                max_mb=max_mb,
                cursor=0 if from_beginning else load_log_size(by.tenant_id),
                next_attempt_at=database_time(),
                created_by=by.id,
            )
    except IntegrityError as error:
        raise StateUnfit.at("/name", "There is a sink of this name already.") from error
    text = add_secret(sink.secrets, tenant_id=sink.tenant_id) if channel == SinkChannel.WEBHOOK else ""
    host = urlsplit(url).hostname or ""
    said = MadeSink(name=name, channel=str(sink.channel), host=host, kinds=wanted, from_=sink.cursor)
    _record(Kind.SINK_MADE, sink, by, said)
    return sink, text


def _check_sink(*, channel: str, url: str, kinds: list[str]) -> None:
    unknown = [kind for kind in kinds if kind not in Kind.values]
    if unknown:
        raise SchemaInvalid.at("/kinds", f"There are no such kinds of facts: {', '.join(unknown)[:200]}.")
    if channel == SinkChannel.FILE:
        if not settings.TOOLHUB_EVENTS_DIR:
            raise StateUnfit.at(
                "/channel", "This hub writes no files: ask its operator to set TOOLHUB_EVENTS_DIR, or send to a server."
            )
        if url:
            raise SchemaInvalid.at("/url", "A sink of files has no address.")
        return
    check_receiver(url, pointer="/url")


def _record(kind: Kind, sink: EventSink, by: Principal, data: LeafData | None = None) -> None:
    evidence.record(kind=kind, subject=sink.wire_id, actor=by, data=data)


def _locked(sink_id: UUID, by: Principal) -> EventSink:
    sink = EventSink.objects.select_for_update().get(pk=sink_id, tenant_id=by.tenant_id)
    if sink.state == SinkState.ENDED:
        raise Conflict("This sink was ended.", remedy="Make another one; it may begin where the log begins.")
    return sink


@transaction.atomic
def pause_sink(*, sink_id: UUID, reason: str, by: Principal) -> EventSink:
    """Send nothing for now. What happens meanwhile waits in the log."""
    sink = _locked(sink_id, by)
    if sink.state != SinkState.ACTIVE:
        raise Conflict("This sink is paused already.")
    sink.state = SinkState.PAUSED
    sink.save(update_fields=["state"])
    _record(Kind.SINK_PAUSED, sink, by, StoppedSink(reason=reason.strip(), cursor=sink.cursor))
    return sink


@transaction.atomic
def resume_sink(*, sink_id: UUID, by: Principal) -> EventSink:
    """Go on where it stopped, now; also what waits after a failure is tried at once."""
    sink = _locked(sink_id, by)
    sink.state, sink.attempts, sink.next_attempt_at = SinkState.ACTIVE, 0, database_time()
    sink.save(update_fields=["state", "attempts", "next_attempt_at"])
    _record(Kind.SINK_RESUMED, sink, by, SinkCursor(cursor=sink.cursor))
    return sink


@transaction.atomic
def rotate_secret(*, sink_id: UUID, overlap: timedelta = OVERLAP, by: Principal) -> tuple[EventSink, str]:
    """Another secret, shown this once. Until the overlap is over, messages carry the signatures of both."""
    sink = _locked(sink_id, by)
    if sink.channel != SinkChannel.WEBHOOK:
        raise Conflict("A sink of files signs nothing.", remedy="The log's own signatures show that a line is genuine.")
    text, overlap_s = signing_secrets.rotate_secret(sink.secrets, tenant_id=sink.tenant_id, overlap=overlap)
    _record(Kind.SINK_ROTATED, sink, by, RotatedSecret(overlap_s=overlap_s))
    return sink, text


@transaction.atomic
def test_sink(*, sink_id: UUID, by: Principal) -> EventSink:
    """A fact about the test itself, which goes the way of all others: behind what waits."""
    sink = _locked(sink_id, by)
    if sink.state != SinkState.ACTIVE:
        raise Conflict("This sink is paused, so a test would wait.", remedy="Resume it first.")
    _record(Kind.SINK_TESTED, sink, by)
    return sink


@transaction.atomic
def end_sink(*, sink_id: UUID, reason: str, by: Principal) -> EventSink:
    """Send nothing there any more. Its secrets are destroyed; files that were written stay."""
    sink = _locked(sink_id, by)
    sink.state = SinkState.ENDED
    sink.save(update_fields=["state"])
    sink.secrets.all().delete()
    _record(Kind.SINK_ENDED, sink, by, StoppedSink(reason=reason.strip(), cursor=sink.cursor))
    return sink


@transaction.atomic
def note_refusal(sink: EventSink, *, by: Principal) -> None:
    """The server says 410: it wants nothing at this address any more. Paused until a person resumes it."""
    if EventSink.objects.filter(pk=sink.pk, state=SinkState.ACTIVE).update(state=SinkState.PAUSED):
        _record(Kind.SINK_REFUSED, sink, by, RefusedSink(status=410, cursor=sink.cursor))
