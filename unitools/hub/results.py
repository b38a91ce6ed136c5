"""Results: what a hub answers, as typed values."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import TypeAdapter

from unitools.hub.errors import Refused, build_refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that an answer rests on. ``hash`` is ``sha256:…`` over canonical JSON."""

    type: str
    name: str
    hash: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """A call that has ended well. ``data`` is what the tool returned, as the type that was asked for, else as JSON.

    ``replayed``: an answer that was there already, since the call was made before with its key. ``envelope`` is all that came.
    """

    data: T
    call_id: str
    tool: str
    version: str
    warnings: tuple[str, ...] = ()
    ttl_seconds: int | None = None
    sources: tuple[Source, ...] = ()
    snapshot_id: str = ""
    artifacts: tuple[Mapping[str, Any], ...] = ()
    post_execution_plan: Any = None
    dry_run: bool = False
    trace_id: str = ""
    replayed: bool = False
    envelope: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that has not ended. ``consent_url`` is where a person decides about one that is held."""

    call_id: str
    tool: str
    state: str
    consent_url: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that a call tells while it goes on: ``state``, ``progress``, ``log`` or ``evidence``, and what of it."""

    kind: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preflight:
    """Whether a call would be allowed. ``problem`` is what is in the way, not raised."""

    allow: bool
    tool: str
    version: str
    problem: Refused | None = None
    refused_at: str = ""
    consent: str = ""
    warnings: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools that this agent may call now, in the dialect that was asked for. ``warnings`` say why there are none.

    ``payload`` is what goes to the provider as it is; ``names`` leads from names in it to names in the hub.
    """

    payload: Any
    dialect: str
    names: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    etag: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class DispatchedCall:
    """One call that a model proposed. ``status`` is a word of :class:`unitools.calls.Status`; ``problem`` is not raised. Without a
    problem and without an end (``is_pending``) it goes on: ``wait(call_id)``.
    """

    id: str
    tool: str
    status: str
    call_id: str = ""
    data: Any = None
    problem: Refused | None = None
    is_pending: bool = False
    repaired: bool = False
    replayed: bool = False
    envelope: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What came of the calls that a model proposed, in their order. ``messages`` go back to the model as they are."""

    messages: Any
    calls: tuple[DispatchedCall, ...]
    dialect: str = ""
    warnings: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def read_warnings(envelope: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(map(str, envelope.get("warnings") or ()))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def read_answer(envelope: Mapping[str, Any], into: Any, *, replayed: bool) -> Answer[Any]:
    """``pydantic.ValidationError`` when the data do not fit the type that was asked for."""
    call, evidence = envelope.get("call") or {}, envelope.get("evidence") or {}
    data = envelope.get("data")
    return Answer(
        data=data if into is None else TypeAdapter(into).validate_json(json.dumps(data)),
        call_id=_text(call.get("call_id")),
        tool=_text(call.get("tool")),
        version=_text(call.get("version")),
        warnings=read_warnings(envelope),
        ttl_seconds=envelope.get("ttl_seconds"),
        sources=tuple(
            Source(
                _text(each.get("type")), _text(each.get("name")), _text(each.get("hash")), _text(each.get("version"))
            )
            for each in evidence.get("sources") or ()
        ),
        snapshot_id=_text(evidence.get("snapshot_id")),
        artifacts=tuple(call.get("artifacts") or ()),
        post_execution_plan=call.get("post_execution_plan"),
        dry_run=bool(call.get("dry_run")),
        trace_id=_text(call.get("trace_id")),
        replayed=replayed,
        envelope=envelope,
    )


def read_pending(envelope: Mapping[str, Any]) -> PendingCall:
    call = envelope.get("call") or {}
    held = call.get("held") or {}
    return PendingCall(
        _text(call.get("call_id")), _text(call.get("tool")), _text(call.get("state")), _text(held.get("url"))
    )


def read_dispatched(envelope: Mapping[str, Any]) -> Dispatched:
    data = envelope.get("data") or {}
    return Dispatched(
        messages=data.get("messages"),
        calls=tuple(_dispatched(each) for each in data.get("calls") or ()),
        dialect=_text(data.get("dialect")),
        warnings=read_warnings(envelope),
        data=data,
    )


def _dispatched(said: Mapping[str, Any]) -> DispatchedCall:
    answer = said.get("answer") or {}
    call, error = answer.get("call") or {}, answer.get("error")
    return DispatchedCall(
        id=_text(said.get("id")),
        tool=_text(said.get("name")),
        status=_text(said.get("status")),
        call_id=_text(call.get("call_id")),
        data=answer.get("data"),
        problem=build_refusal(error, call_id=_text(call.get("call_id"))) if isinstance(error, dict) else None,
        is_pending=call.get("status") == "pending",
        repaired=bool(said.get("repaired")),
        replayed=bool(said.get("replayed")),
        envelope=answer,
    )


def read_preflight(envelope: Mapping[str, Any]) -> Preflight:
    data = envelope.get("data") or {}
    problem = data.get("problem")
    return Preflight(
        allow=bool(data.get("allow")),
        tool=_text(data.get("tool")),
        version=_text(data.get("version")),
        problem=build_refusal(problem) if isinstance(problem, dict) else None,
        refused_at=_text(data.get("refused_at")),
        consent=_text(data.get("consent")),
        warnings=read_warnings(envelope),
        details=data,
    )
