"""Event stream: how a caller follows a call while it waits and runs, and resumes where its connection broke off.

As server-sent events. Each carries a :class:`StreamCursor` as its id, which says what was told up to there, so that whoever comes back
with it misses nothing and gets nothing twice; no connection has to be remembered. Waiting costs no thread: the database is
looked at for moments, when the call's waker says that something has become of it and once a second anyway.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from asgiref.sync import sync_to_async
from django.conf import settings

from access.authentication.bearer import resolve_principal
from evidence.kinds import PAIR, Kind
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.services import open_values, reveal_values
from invocations.answer.envelope import build_answer_envelope
from invocations.answer.wake_ups import get_waker
from invocations.models import Invocation, State
from invocations.problems import TooManyStreams
from invocations.run.live_output import select_caller_lines
from invocations.stopped_streams import HaltWatch, StreamTopic
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for, acting_for_nobody
from kernel.http.exception_handlers import translate_exception
from kernel.problems import Malformed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from uuid import UUID

    from kernel.principal import Principal

SCOPE = "invocations:read"
LOOK_EVERY_S = 1.0
HEARTBEAT_S = 15.0
READ_OWN_ANSWER = "The agent follows its own call to its answer."
# What the one who made a call is told of; of each kind its facts come one after the other, so their number says which were told.
KINDS = (
    *PAIR,
    Kind.INVOCATION_HELD,
    Kind.INVOCATION_RESUMED,
    Kind.INVOCATION_CANCEL_ASKED,
    Kind.INVOCATION_RETRIED,
    Kind.INVOCATION_SEGMENT,
)
_FORM = re.compile(r"([a-z_]*)\.(\d{1,9})\.(\d{1,9})\.(\d{1,18})\.(\d{1,9}(?:-\d{1,9})*)")
OVER = "over"


@dataclass(frozen=True, slots=True)
class StreamCursor:
    """What was told so far: the state and the run, the last line of that run, when the last progress was said, and how many facts
    of each kind.
    """

    state: str = ""
    attempt: int = 0
    line: int = 0
    progress: int = 0
    facts: tuple[int, ...] = (0,) * len(KINDS)

    def __str__(self) -> str:
        return f"{self.state}.{self.attempt}.{self.line}.{self.progress}.{'-'.join(map(str, self.facts))}"

    @classmethod
    def read(cls, text: str) -> StreamCursor:
        if not text:
            return cls()
        found = _FORM.fullmatch(text)
        if found is None or found[1] not in ("", OVER, *State.values) or found[5].count("-") != len(KINDS) - 1:
            raise Malformed(
                "Last-Event-ID is not the id of an event of this stream.",
                remedy="Leave it out to begin from the beginning.",
            )
        counts = tuple(int(each) for each in found[5].split("-"))
        return cls(found[1], int(found[2]), int(found[3]), int(found[4]), counts)

    @property
    def is_over(self) -> bool:
        return self.state == OVER

    def past(self, kind: str) -> StreamCursor:
        """After one more fact of this kind."""
        at = KINDS.index(Kind(kind))
        return replace(self, facts=(*self.facts[:at], self.facts[at] + 1, *self.facts[at + 1 :]))


@dataclass(frozen=True, slots=True)
class StreamCredentials:
    """What the request came with. It is asked again with each look, so that what was taken back ends the stream."""

    text: str
    address: str

    def principal(self) -> Principal:
        principal = resolve_principal(self.text, address=self.address)
        principal.check(SCOPE)
        return principal


class Follower(ABC):
    """One stream of what becomes of something that has an id. ``look`` runs in a thread, never twice at a time."""

    def __init__(self, followed_id: UUID, credentials: StreamCredentials) -> None:
        self.followed_id = followed_id
        self._credentials = credentials
        self._written: list[str] = []
        self._halts, self._opened_at = HaltWatch(), time.monotonic()
        self.is_over = False

    @abstractmethod
    def tell_news(self, by: Principal) -> None:
        """Write what there is to tell since the last time; at the end, ``is_over``."""

    @abstractmethod
    def get_cursor(self) -> str:
        """What was told so far, as an id of an event."""

    def look(self) -> str:
        """What there is to tell since the last look, as text of the stream; empty when there is nothing."""
        self._written = []
        try:
            with acting_for_nobody():
                by = self._credentials.principal()
            with acting_for(by.tenant_id):
                self._check_not_stopped(by)
                self.tell_news(by)
        except Exception as error:  # noqa: BLE001  whatever it is, the reader is told before the stream ends; problem_of logs it
            self.is_over = True
            self.write("error", translate_exception(error).to_error())
        finally:
            release_connection()
        return "".join(self._written)

    def _check_not_stopped(self, by: Principal) -> None:
        for problem in self._halts.find_stopped([self.get_topic(by)]).values():
            raise problem

    def get_topic(self, by: Principal) -> StreamTopic:
        """Whose the stream is, and of which tool."""
        return StreamTopic(by.tenant_id, by.agent_id, opened_at=self._opened_at)

    def write(self, event: str, data: Any, *, has_id: bool = True) -> None:
        """``has_id`` is false for passing news: who comes back is told what is true then, and not what was missed of them."""
        text = json.dumps(data, ensure_ascii=False)
        id = "" if event == "error" or not has_id else f"id: {self.get_cursor()}\n"
        self._written.append(f"{id}event: {event}\ndata: {text}\n\n")


class CallFollower(Follower):
    """One stream of a call."""

    def __init__(self, invocation_id: UUID, credentials: StreamCredentials, cursor: StreamCursor) -> None:
        super().__init__(invocation_id, credentials)
        self._cursor = cursor
        self._live_seen: UUID | None = None
        self._facts_seen = -1
        self._lines_seen, self._segments_seen = cursor.line, 0
        self._topic: tuple[str, UUID | None] = ("", None)  # tool and version, known with the first look

    def get_cursor(self) -> str:
        return str(self._cursor)

    def get_topic(self, by: Principal) -> StreamTopic:
        tool, version_id = self._topic
        return replace(super().get_topic(by), tool=tool, version_id=version_id)

    def tell_news(self, by: Principal) -> None:
        """The row is read first: when it has ended, all that was said and witnessed before is there to be read as well."""
        invocation = Invocation.objects.visible_to(by).select_related("version__tool").get(pk=self.followed_id)
        self._topic = (invocation.tool, invocation.version_id)
        if not invocation.is_final:
            self._tell_state(invocation)
        self._tell_output(invocation)
        self._tell_facts(invocation)
        if invocation.is_final:
            self._tell_state(invocation)
            self._tell_end(invocation, by)

    def _tell_state(self, invocation: Invocation) -> None:
        if (invocation.state, invocation.attempt) == (self._cursor.state, self._cursor.attempt):
            return
        line = self._cursor.line if invocation.attempt == self._cursor.attempt else 0  # each run counts its own
        self._cursor = replace(self._cursor, state=invocation.state, attempt=invocation.attempt, line=line)
        self.write("state", {"call_id": invocation.wire_id, "state": invocation.state, "attempt": invocation.attempt})

    def _tell_output(self, invocation: Invocation) -> None:
        """Lines and progress. Where the answer is to be redacted, of both only the fraction done, as `live` has it."""
        if invocation.obligations:
            self._tell_progress({"fraction": invocation.progress}, round((invocation.progress or 0) * 1000))
            return
        live = None
        if invocation.state == State.RUNNING:
            live = Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.LIVE).first()
        if live is not None and live.pk == self._live_seen:
            live = None
        ended = invocation.is_final and not self._cursor.is_over
        if live is None and not ended:
            return
        documents = [open_values(live)] if live else []
        if live is not None:
            self._live_seen = live.pk
        first = min((each["number"] for document in documents for each in document["lines"]), default=0)
        if ended or first > self._lines_seen + 1:  # what is no more in it is in the segments
            rows = Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.SEGMENT)
            sealed = list(rows.filter(number__gt=self._segments_seen).order_by("number"))
            self._segments_seen = sealed[-1].number if sealed else self._segments_seen
            documents = [*(open_values(each) for each in sealed), *documents]
        self._tell_lines(invocation, documents)
        progress = documents[-1]["progress"] if documents else None
        if progress and live is not None:
            self._tell_progress(progress, _stamp(progress["at"]))

    def _tell_lines(self, invocation: Invocation, documents: list[dict[str, Any]]) -> None:
        """In their order, each once: a line may be in a segment and in what is said now."""
        for document in documents:
            attempt = document.get("attempt", invocation.attempt)
            if attempt != invocation.attempt:
                continue  # of a run that was lost; the run that goes on tells its own
            self._lines_seen = max([self._lines_seen, *(each["number"] for each in document["lines"])])
            for line in select_caller_lines(document):
                if line["number"] > self._cursor.line or attempt > self._cursor.attempt:
                    self._cursor = replace(self._cursor, line=line["number"], attempt=attempt)
                    self.write("log", line)

    def _tell_progress(self, progress: dict[str, Any], stamp: int) -> None:
        if stamp > self._cursor.progress:
            self._cursor = replace(self._cursor, progress=stamp)
            self.write("progress", progress)

    def _tell_facts(self, invocation: Invocation) -> None:
        rows = Fact.objects.of_calls(invocation.pk).filter(tenant_id=invocation.tenant_id, kind__in=KINDS)
        count = rows.count()
        if count == self._facts_seen:
            return
        self._facts_seen, passed = count, Counter[str]()
        for fact in rows.order_by("id").only("id", "kind", "occurred_at", "leaf_hash"):
            passed[fact.kind] += 1
            if passed[fact.kind] > self._cursor.facts[KINDS.index(Kind(fact.kind))]:
                self._cursor = self._cursor.past(fact.kind)
                at, leaf_hash = fact.occurred_at.isoformat(), bytes(fact.leaf_hash).hex()
                self.write("evidence", {"id": fact.wire_id, "kind": fact.kind, "at": at, "leaf_hash": leaf_hash})

    def _tell_end(self, invocation: Invocation, by: Principal) -> None:
        """The answer, as a GET of the call gives it, and like that a fact of its own."""
        for snapshot in Snapshot.objects.filter(invocation_id=invocation.pk, kind=SnapshotKind.OUTPUT):
            reveal_values(snapshot=snapshot, reason=READ_OWN_ANSWER, by=by)
        answer = build_answer_envelope(invocation).to_json(instance=f"/api/v1/invocations/{invocation.wire_id}")
        self._cursor, self.is_over = replace(self._cursor, state=OVER), True
        self.write("end", answer)


def _stamp(text: str) -> int:
    """Milliseconds: the digits of a time in ISO form are in its order."""
    return int(re.sub(r"\D", "", text.partition("+")[0])[:17].ljust(17, "0"))


# The stream itself.

_open: Counter[str] = Counter()  # by agent; changed by the one thread of the event loop


def check_stream_limit(agent: str) -> None:
    """No agent holds more streams of this process open than it may."""
    most = settings.TOOLHUB_STREAMS_PER_AGENT
    if _open[agent] >= most:
        raise TooManyStreams(
            f"This agent follows {most} calls here already.",
            remedy="Close a stream that is not needed, or ask at intervals for the state of the call.",
            details={"max_streams": most},
        )


@contextmanager
def _one_more(agent: str) -> Iterator[None]:
    _open[agent] += 1
    try:
        yield
    finally:
        _open[agent] -= 1
        if not _open[agent]:
            del _open[agent]


async def stream_events(follower: Follower, *, agent: str) -> AsyncIterator[str]:
    """The text of the stream until what is followed has ended, its reader has gone, or may not read it any more."""
    look = sync_to_async(follower.look, thread_sensitive=False)
    try:
        check_stream_limit(
            agent
        )  # again: of many that came at once, all were below the limit when their requests were looked at
    except TooManyStreams as problem:
        yield f"event: error\ndata: {json.dumps(problem.to_error())}\n\n"
        return
    with _one_more(agent), ExitStack() as stack:
        # In a thread, since the first one of a process opens the connection that wake-ups come through.
        enter = sync_to_async(stack.enter_context, thread_sensitive=False)
        waiter = await enter(get_waker().listen(follower.followed_id))
        yield "retry: 1000\n\n"
        spoke = time.monotonic()
        while True:
            if text := await look():
                yield text
                spoke = time.monotonic()
            if follower.is_over:
                return
            if time.monotonic() - spoke >= HEARTBEAT_S:
                yield ": here\n\n"
                spoke = time.monotonic()
            await waiter.wait_async(LOOK_EVERY_S)
