"""Model protocol: what is sent to a hub to ask a model, and how the pieces of an answer are read.

Like :mod:`unitools.hub.protocol` without any input or output. A request that got no answer is sent again with its key: a hub that had
the answer gives it, and one that lost its caller says that it ended the call. No model is asked twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from unitools.hub.errors import NotUnderstood, Refused, Unreachable, build_refusal
from unitools.hub.model_results import read_chat_answer, read_delta, read_model
from unitools.hub.protocol import (
    API,
    CallSpec,
    HubRequest,
    Reply,
    RetryLimits,
    Step,
    StreamRequest,
    find_first_call,
    follow_call,
    is_open_stream,
    send_request,
)
from unitools.hub.results import Answer, read_answer, read_warnings
from unitools.server_sent_events import EventReader

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from unitools.hub.model_results import ChatAnswer, ChatDelta, OfferedModel

MAX_ANSWER_CHARS = 64 * 1024 * 1024
LISTS = ("items", "stop", "tools")
BROKE_OFF = "The stream ended before the answer did. With the same key the hub says what became of the call."
NO_STREAM = "The hub answered something else than a stream."


def _model_path(model: str, operation: str) -> str:
    return f"{API}/models/{quote(model, safe='.')}/{operation}"


def build_arguments(options: Mapping[str, Any], **content: Any) -> dict[str, Any]:
    """The arguments of a call; an option that is None is not sent. One text does for a list of one."""
    said = content | {name: value for name, value in options.items() if value is not None}
    return {name: [value] if name in LISTS and isinstance(value, str) else value for name, value in said.items()}


def ask_model(model: str, operation: str, call: CallSpec, patience: RetryLimits) -> Generator[Step, Any, Answer[Any]]:
    """The answer as a whole. The hub keeps the request open until it is there."""
    patience = patience.begin()
    send = HubRequest(
        "POST", _model_path(model, operation), dict(call.body), call.all_headers(), timeout_s=patience.timeout_s
    )
    try:
        envelope, reply = yield from send_request(send, patience)
    except Refused as problem:
        if not (first := find_first_call(problem)):
            raise
        return (yield from follow_call(first, patience, into=None, on_event=None))
    return read_answer(envelope, None, replayed=_is_replayed(reply))


def open_answer(model: str, call: CallSpec, patience: RetryLimits) -> Generator[Step, Any, Reply]:
    """The beginning of a stream, which stays open."""
    patience = patience.begin()
    headers = call.all_headers() | {"Accept": "text/event-stream"}
    path = _model_path(model, "chat")
    send = StreamRequest("POST", path, dict(call.body), headers, timeout_s=patience.timeout_s)
    _, reply = yield from send_request(send, patience)
    if not is_open_stream(reply):
        raise NotUnderstood(NO_STREAM, status=reply.status)
    return reply


def list_models(operation: str, patience: RetryLimits) -> Generator[Step, Any, tuple[OfferedModel, ...]]:
    """All that this agent may call now, page by page."""
    patience, query = patience.begin(), {"operation": operation} if operation else {}
    found: list[OfferedModel] = []
    while True:
        path = f"{API}/models?{urlencode(query)}" if query else f"{API}/models"
        envelope, _ = yield from send_request(HubRequest("GET", path), patience)
        data = envelope.get("data") or {}
        found += [read_model(each) for each in data.get("models") or ()]
        if not data.get("next"):
            return tuple(found)
        query["after"] = data["next"]


def _is_replayed(reply: Reply) -> bool:
    return reply.headers.get("idempotency-replayed") == "true"


class AnswerReader:
    """The pieces of one answer, in the text of its stream, and at last the whole."""

    def __init__(self, reply: Reply) -> None:
        self._events = EventReader(max_chars=MAX_ANSWER_CHARS)
        self._replayed = _is_replayed(reply)
        self.call_id = reply.headers.get("location", "").rpartition("/")[2]
        self.answer: ChatAnswer | None = None

    def read(self, text: str) -> list[ChatDelta]:
        """The pieces in this text; ``answer`` is there once the last has come. Raises what the hub refuses."""
        try:
            events = self._events.read(text)
            return [delta for event in events if (delta := self._take(event.kind, json.loads(event.data))) is not None]
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise NotUnderstood(f"The stream is none of a hub's ({type(error).__name__}).", status=200) from None

    def _take(self, kind: str, data: Any) -> ChatDelta | None:
        match kind:
            case "delta":
                return read_delta(data)
            case "end":
                self.answer = read_chat_answer(read_answer(data, None, replayed=self._replayed))
            case "error":
                raise self._build_refusal(data)
        return None

    def _build_refusal(self, data: Mapping[str, Any]) -> Refused:
        """The problem stands in an envelope, or alone where the hub could write none."""
        call = data.get("call") or {}
        call_id = str(call.get("call_id") or self.call_id)
        return build_refusal(data.get("error") or data, status=200, call_id=call_id, warnings=read_warnings(data))

    def finish(self) -> ChatAnswer:
        """The whole answer, once the stream has ended. Raises Unreachable where it broke off."""
        if self.answer is None:
            raise Unreachable(BROKE_OFF, may_have_arrived=True)
        return self.answer
