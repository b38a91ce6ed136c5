"""Protocol: what is sent to a hub, in which order, and what follows from each answer.

Without any input or output: each function is a generator that yields steps and is sent what came of them. The clients
(:mod:`unitools.hub.clients`) only carry the steps out, one of them blocking and one not, so both behave alike.

A logical call has one ``request_id`` and one Idempotency-Key, made before its first request. Whatever is sent again is sent with both,
so a hub that has begun the call gives its answer instead of making it twice.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from unitools.hub.errors import HubError, NotUnderstood, Refused, StillRunning, Unreachable, build_refusal
from unitools.hub.results import (
    Answer,
    Dispatched,
    Event,
    PendingCall,
    Preflight,
    Tools,
    read_answer,
    read_dispatched,
    read_pending,
    read_preflight,
    read_warnings,
)
from unitools.server_sent_events import EventReader

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import TypeVar

    T = TypeVar("T")

API = "/api/v1"
SLICE_S = 20.0  # how long the hub is asked to keep a request waiting; proxies end those that last a minute
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 20.0
MAX_EVENTS_LOST = 5
MAX_EVENT_CHARS = 4 * 1024 * 1024
_CALL_ID = re.compile(r"inv_[0-9A-Za-z]{1,64}")


@dataclass(frozen=True, slots=True)
class HubRequest:
    """One request. ``body`` is JSON, or bytes as they are. ``safe``: it may be sent again whatever became of it; unless it is said,
    that is so for what has no effect of its own the second time: no POST or PATCH without an Idempotency-Key.
    """

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    safe: bool | None = None
    timeout_s: float = 30.0

    @property
    def is_safe(self) -> bool:
        if self.safe is not None:
            return self.safe
        return self.method not in ("POST", "PATCH") or any(name.lower() == "idempotency-key" for name in self.headers)


@dataclass(frozen=True, slots=True)
class StreamRequest(HubRequest):
    """The same, but its answer is a stream of events, unless its status is another than 200."""


@dataclass(frozen=True, slots=True)
class StreamRead:
    """The next piece of text of the stream, whatever its length; None when the stream has ended."""


@dataclass(frozen=True, slots=True)
class StreamClose:
    """The stream is not needed any more."""


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a request. Header names are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


Step = HubRequest | StreamRead | StreamClose | Pause


class ConnectionLost(Exception):
    """The connection failed: thrown into the generator in place of what came of a step. ``sent``: it may have arrived."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """How long and how often? ``clock`` counts seconds; ``attempts`` are those of one request."""

    timeout_s: float
    attempts: int
    clock: Callable[[], float]
    until: float = 0.0

    def begin(self) -> RetryLimits:
        return replace(self, until=self.clock() + self.timeout_s)

    @property
    def left_s(self) -> float:
        return max(0.0, self.until - self.clock())


@dataclass(frozen=True, slots=True)
class CallSpec:
    """One logical call, as it is sent each time."""

    body: Mapping[str, Any]
    key: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def all_headers(self, prefer: str = "") -> dict[str, str]:
        return {
            **self.headers,
            "Idempotency-Key": f'"{self.key}"',
            **({"Prefer": prefer} if prefer else {}),
        }


def read_envelope(reply: Reply) -> dict[str, Any]:
    """The envelope of an answer; ``NotUnderstood`` when it holds none."""
    try:
        document = json.loads(reply.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not isinstance(document.get("ok"), bool):
        raise NotUnderstood(
            f"The answer ({reply.status}) is none of a hub's. Is this the address of the hub, without /api/v1?",
            status=reply.status,
        )
    return document


def _refused(envelope: Mapping[str, Any], reply: Reply) -> Refused:
    call = envelope.get("call") or {}
    problem = build_refusal(
        envelope["error"] or {},
        status=reply.status,
        call_id=str(call.get("call_id") or ""),
        warnings=read_warnings(envelope),
    )
    said = reply.headers.get("retry-after", "")
    if said.isdecimal():
        problem.retry_after_s = float(said)
    return problem


def _may_help(problem: Refused, reply: Reply) -> bool:
    """Whether the very same request can have another answer. A call that has ended keeps its own."""
    if (
        reply.status < 400
        or reply.headers.get("idempotency-replayed") == "true"
        or problem.reason.startswith("DOMAIN.")
    ):
        return False
    return problem.retryable in ("yes", "same_key")


def _pause_s(attempt: int, told: float | None) -> float:
    """What the hub says, or twice as long as before; never all callers at the same moment."""
    if told is not None:
        return told
    most = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**attempt)
    return most * random.uniform(0.5, 1.0)  # noqa: S311  no secret


def send_request(
    send: HubRequest, patience: RetryLimits, *, takes_problem: bool = False
) -> Generator[Step, Any, tuple[dict[str, Any], Reply]]:
    """Send it until there is an answer that sending again cannot change. Raises what the hub refuses.

    ``takes_problem``: of what has ended badly the answer is wanted as well, where the request itself was good.
    """
    attempt = 0
    while True:
        told: float | None = None
        try:
            reply = yield from _exchange(replace(send, timeout_s=min(send.timeout_s, max(1.0, patience.left_s))))
            if reply.status == 304 or (isinstance(send, StreamRequest) and is_open_stream(reply)):
                return {}, reply
            envelope = read_envelope(reply)
            if envelope["ok"] or (takes_problem and reply.status < 400):
                return envelope, reply
            problem = _refused(envelope, reply)
            failure: HubError = problem
            again, told = _may_help(problem, reply), problem.retry_after_s
        except ConnectionLost as lost:
            failure = Unreachable(str(lost), may_have_arrived=lost.sent)
            again = send.is_safe or not lost.sent
        except NotUnderstood as odd:  # a proxy in front of a hub that is away
            failure, again = odd, odd.status in (429, 502, 503, 504) and send.is_safe
        pause = _pause_s(attempt, told)
        attempt += 1
        if not again or attempt >= patience.attempts or pause >= patience.left_s:
            raise failure
        yield Pause(pause)


def _exchange(send: HubRequest) -> Generator[Step, Any, Reply]:
    """What came of a request. Of one that asked for a stream and got none, its body too."""
    reply: Reply = yield send
    if not isinstance(send, StreamRequest) or is_open_stream(reply):
        return reply
    texts: list[str] = []
    while (text := (yield StreamRead())) is not None:
        texts.append(text)
    yield StreamClose()
    return replace(reply, body="".join(texts).encode())


def is_open_stream(reply: Reply) -> bool:
    return reply.status == 200 and reply.headers.get("content-type", "").startswith("text/event-stream")


def invoke_tool(
    tool: str,
    call: CallSpec,
    patience: RetryLimits,
    *,
    into: Any = None,
    on_event: Callable[[Event], None] | None = None,
) -> Generator[Step, Any, Answer[Any]]:
    """Make a call and get its answer, however long it takes within the time."""
    return (
        yield from make_call(
            f"{API}/tools/{quote(tool, safe='.')}/invoke", call, patience, into=into, on_event=on_event
        )
    )


def make_call(
    path: str, call: CallSpec, patience: RetryLimits, *, into: Any, on_event: Callable[[Event], None] | None
) -> Generator[Step, Any, Answer[Any]]:
    patience = patience.begin()
    prefer = "respond-async" if on_event else f"wait={max(1, int(min(SLICE_S, patience.left_s)))}"
    send = HubRequest("POST", path, dict(call.body), call.all_headers(prefer), timeout_s=SLICE_S + 15)
    try:
        envelope, reply = yield from send_request(send, patience)
    except Refused as problem:
        if not (first := find_first_call(problem)):
            raise
        return (yield from follow_call(first, patience, into=into, on_event=on_event))
    if reply.status != 202:
        return read_answer(envelope, into, replayed=reply.headers.get("idempotency-replayed") == "true")
    return (yield from follow_call(read_pending(envelope).call_id, patience, into=into, on_event=on_event))


def find_first_call(problem: Refused) -> str:
    """The call that has this key already and goes on; empty where there is none."""
    if problem.reason != "IDEMPOTENCY.IN_PROGRESS":
        return ""
    found = str(problem.details.get("first_call", ""))
    return found if _CALL_ID.fullmatch(found) else ""


def begin_call(tool: str, call: CallSpec, patience: RetryLimits) -> Generator[Step, Any, PendingCall]:
    """Make a call without waiting for it."""
    patience = patience.begin()
    path = f"{API}/tools/{quote(tool, safe='.')}/invoke"
    envelope, _ = yield from send_request(
        HubRequest("POST", path, dict(call.body), call.all_headers("respond-async")), patience
    )
    return read_pending(envelope)


def wait_for_call(
    call_id: str, patience: RetryLimits, *, into: Any = None, on_event: Callable[[Event], None] | None = None
) -> Generator[Step, Any, Answer[Any]]:
    """The answer of a call that was made before."""
    if not _CALL_ID.fullmatch(call_id):
        raise ValueError("The id of a call begins with inv_.")
    return (yield from follow_call(call_id, patience.begin(), into=into, on_event=on_event))


def follow_call(
    call_id: str, patience: RetryLimits, *, into: Any, on_event: Callable[[Event], None] | None
) -> Generator[Step, Any, Answer[Any]]:
    """To its end by events, or by asking at intervals where they cannot be had; then its answer."""
    yield from follow_events(f"{API}/invocations/{call_id}/events", patience, on_event)
    while True:  # the answer is read at its own address, so it is the same however the call was waited for
        envelope, reply = yield from send_request(HubRequest("GET", f"{API}/invocations/{call_id}"), patience)
        if reply.status != 202:
            if envelope.get("call", {}).get("status") not in ("ok", None):
                raise _ended_without_answer(envelope)
            return read_answer(envelope, into, replayed=False)
        pause = read_retry_after(reply)
        if patience.left_s <= pause:
            pending = read_pending(envelope)
            raise StillRunning(
                f"The call {call_id} has not ended in the time given to it; it goes on ({pending.state}).",
                call_id=call_id,
                state=pending.state,
            )
        yield Pause(pause)


def read_retry_after(reply: Reply) -> float:
    """Seconds until what goes on is asked for again."""
    told = reply.headers.get("retry-after", "")
    return float(told) if told.isdecimal() else 1.0


def _ended_without_answer(envelope: Mapping[str, Any]) -> Refused:
    call = envelope["call"]
    state = str(call.get("state"))
    return build_refusal(
        {"code": "CONFLICT", "message": f"The call ended as {state}."}, call_id=str(call.get("call_id"))
    )


def follow_events(
    path: str, patience: RetryLimits, on_event: Callable[[Event], None] | None
) -> Generator[Step, Any, None]:
    """Until the end was told, the time is over, or asking is the better way."""
    last, lost = "", 0
    while lost <= MAX_EVENTS_LOST and patience.left_s > 0:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        try:
            reply: Reply = yield StreamRequest("GET", path, None, headers)
            if reply.status != 200:
                yield StreamClose()
                return
            stream = EventReader(max_chars=MAX_EVENT_CHARS)
            while patience.left_s > 0 and (text := (yield StreamRead())) is not None:
                for event in stream.read(text):
                    last, lost = event.id or last, 0
                    if event.kind in ("end", "error"):
                        yield StreamClose()
                        return
                    if on_event is not None:
                        on_event(Event(event.kind, json.loads(event.data)))
        except ConnectionLost:
            pass
        yield StreamClose()
        lost += 1
        if lost <= MAX_EVENTS_LOST and patience.left_s > 0:
            yield Pause(min(_pause_s(lost, None), patience.left_s))


def cancel_call(call_id: str, patience: RetryLimits) -> Generator[Step, Any, str]:
    """The state in which the call is now: ``cancelled``, or one in which its end was asked for but not seen yet."""
    if not _CALL_ID.fullmatch(call_id):
        raise ValueError("The id of a call begins with inv_.")
    envelope, _ = yield from send_request(HubRequest("DELETE", f"{API}/invocations/{call_id}"), patience.begin())
    return read_pending(envelope).state


def preflight_call(tool: str, body: Mapping[str, Any], patience: RetryLimits) -> Generator[Step, Any, Preflight]:
    path = f"{API}/tools/{quote(tool, safe='.')}/preflight"
    envelope, _ = yield from send_request(HubRequest("POST", path, dict(body), safe=True), patience.begin())
    return read_preflight(envelope)


def discover_tools(
    query: Mapping[str, str], patience: RetryLimits, known: Tools | None = None
) -> Generator[Step, Any, Tools]:
    """``known``: what was found before with the same query, given back when nothing has changed."""
    headers = {"If-None-Match": known.etag} if known is not None and known.etag else {}
    path = f"{API}/tools?{urlencode(sorted(query.items()))}"
    envelope, reply = yield from send_request(HubRequest("GET", path, None, headers), patience.begin())
    if reply.status == 304 and known is not None:
        return known
    data = envelope.get("data") or {}
    return Tools(
        payload=data.get("payload", data.get("tools")),
        dialect=str(data.get("dialect") or query.get("dialect", "")),
        names=dict(data.get("names") or {}),
        warnings=read_warnings(envelope),
        etag=reply.headers.get("etag", ""),
        data=data,
    )


def dispatch_response(call: CallSpec, patience: RetryLimits) -> Generator[Step, Any, Dispatched]:
    """Send what a provider answered; the hub reads the calls in it and makes each."""
    patience = patience.begin()
    send = HubRequest(
        "POST", f"{API}/dispatch", dict(call.body), call.all_headers(), timeout_s=max(60.0, patience.timeout_s)
    )
    envelope, _ = yield from send_request(send, patience)
    return read_dispatched(envelope)


def request_envelope(send: HubRequest, patience: RetryLimits) -> Generator[Step, Any, dict[str, Any]]:
    """Any other request: its envelope."""
    envelope, _ = yield from send_request(send, patience.begin())
    return envelope
