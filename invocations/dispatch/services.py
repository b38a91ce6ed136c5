"""Dispatch: what becomes of the calls that a model's response holds.

The driver of its dialect reads them. Each goes the one way in (:func:`invocations.services.begin_call`), as a proposal of a model
does; they are begun one after the other and run beside each other. Each is answered exactly once, in the order of the response:
also one that names no tool, and one whose arguments cannot be used, which never runs.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings

from access.problems import ConsentRequired, RateLimited
from access.server_accounts.problems import AccountRequired
from invocations import services
from invocations.answer.envelope import build_answer_envelope
from invocations.calls import CallRefused, CallRequest
from invocations.dispatch.problems import (
    ArgumentsTruncated,
    ArgumentsUnusable,
    CallIdTwice,
    ResponseAmbiguous,
    ResponseNotKnown,
)
from invocations.models import Origin, State
from invocations.problems import CallCancelled
from invocations.proposals.proposal_links import complete_link
from invocations.request_tallies import count_rejected
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.parsers import holds_nul
from kernel.problems import Malformed, PlatformCode, Problem, SchemaInvalid, TooLarge
from registry.discovery.tool_specs import known_driver, reading_for
from registry.problems import UnknownTool
from unitools import dialects
from unitools.calls import CallProblem, Status, ToolResult
from unitools.dialects import DialectError, find_driver, recognise_response
from unitools.dialects.response_decoder import decode_response
from unitools.dialects.text_calls import TextDriver, describe_untrusted_text, unfold_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.answer.prefer_header import Preferences
    from invocations.calls import AnsweredCall, BegunCall
    from kernel.http.envelopes import RequestEnvelope
    from kernel.principal import Principal
    from unitools.calls import ToolCall
    from unitools.dialects import Driver

MAX_CALLS = 100
UNUSABLE: dict[CallProblem, type[Problem]] = {
    CallProblem.TRUNCATED: ArgumentsTruncated,
    CallProblem.DUPLICATE_ID: CallIdTwice,
}
NUL = "The arguments hold a NUL character, which cannot be stored."


class ReadResponse(NamedTuple):
    """Who answers in the response's dialect, its calls in their order, and what a text without any looks like."""

    driver: Driver
    calls: list[ToolCall]
    looks_like: str = ""


def read_response(response: object, *, dialect: str, model: str, by: Principal, trust_text: str = "") -> ReadResponse:
    """The calls by the tools that the tenant has installed, whether they may be called or not.

    ``dialect``: empty where the shape of the response is to tell; ``model`` helps where two dialects look alike. ``trust_text``: the
    form in which the model writes calls into its text, if the caller says that they are its own. Raises a problem for what cannot be
    read.
    """
    try:
        read = _read(response, dialect=dialect, model=model, by=by, trust_text=trust_text)
    except dialects.AmbiguousResponse as error:
        raise ResponseAmbiguous(
            str(error), details={"dialects": list(error.dialects)}, remedy="Name it in the field `dialect`."
        ) from error
    except dialects.ResponseTooLarge as error:
        raise TooLarge(str(error)) from error
    except dialects.NotJson as error:
        raise Malformed(str(error)) from error
    except DialectError as error:
        raise ResponseNotKnown(str(error)) from error
    if len(read.calls) > MAX_CALLS:
        raise SchemaInvalid.at("/response", f"It holds {len(read.calls)} calls; at most {MAX_CALLS} are taken at once.")
    return read


def _read(response: object, *, dialect: str, model: str, by: Principal, trust_text: str) -> ReadResponse:
    if trust_text and not ((answer := unfold_text(response)) and answer.calls):
        trusted = TextDriver(trust_text)
        return ReadResponse(trusted, trusted.parse(response, reading_for("openai", by=by, with_schemas=True)))
    decoded = decode_response(response)
    driver = known_driver(dialect) if dialect else _recognised(decoded, model=model)
    calls = driver.parse(decoded, reading_for(driver.dialect, by=by))
    return ReadResponse(driver, calls, "" if calls else describe_untrusted_text(decoded))


def _recognised(response: object, *, model: str) -> Driver:
    try:
        return recognise_response(response)
    except dialects.AmbiguousResponse as error:
        if not model or (found := find_driver(model)).dialect not in error.dialects:
            raise
        return found


def build_call(proposed: ToolCall, *, envelope: RequestEnvelope, scope: str, prefers: Preferences) -> CallRequest:
    """The call with a key of its own, made from the request's and the model's id for it: who sends a response again, because the
    answer was lost, has nothing run twice.
    """
    unusable = _why_unusable(proposed)
    first = envelope.idempotency_key or envelope.request_id
    key = hashlib.sha256(json.dumps([first, proposed.id]).encode()).hexdigest()
    wait_s = prefers.wait_s
    if wait_s is None and not prefers.respond_async:
        wait_s = settings.TOOLHUB_SYNC_WAIT_S  # a model goes on with the answers of all
    proposal = (proposed.provider_id or proposed.id).encode(errors="replace").decode()
    keyed = replace(envelope, idempotency_key="" if unusable else f"dispatch:{key}")
    return CallRequest(
        tool=proposed.name,
        arguments=proposed.raw if unusable else proposed.arguments,
        envelope=complete_link(keyed, proposal),
        origin=Origin.LLM,
        proposal=proposal,
        scope=scope,
        respond_async=prefers.respond_async,
        wait_s=wait_s,
        unusable=unusable,
    )


def _why_unusable(proposed: ToolCall) -> Problem | None:
    if proposed.problem is not None:
        kind = UNUSABLE.get(proposed.problem, ArgumentsUnusable)
        return kind(proposed.why, details={"problem": str(proposed.problem)})
    if proposed.arguments is None or holds_nul(proposed.arguments):
        return ArgumentsUnusable(NUL, details={"problem": str(CallProblem.BAD_TEXT)})
    return None


@dataclass(slots=True)
class ResponseCall:
    """One call of a response. Of ``begun``, ``refused`` and ``problem`` one is set; ``answered`` once nobody waits for it any more."""

    proposed: ToolCall
    begun: BegunCall | None = None
    refused: CallRefused | None = None
    problem: Problem | None = None
    answered: AnsweredCall | None = None

    @property
    def is_waited_for(self) -> bool:
        return self.begun is not None and self.answered is None

    @property
    def goes_on(self) -> bool:
        return self.answered is not None and not self.answered.invocation.is_final

    def envelope(self) -> ResponseEnvelope:
        if self.problem is not None:
            return ResponseEnvelope(error=self.problem)
        if self.refused is not None:
            return build_answer_envelope(
                self.refused.invocation, problem=self.refused.problem, preflight=self.refused.preflight
            )
        assert self.answered is not None
        return build_answer_envelope(self.answered.invocation)


class Dispatch:
    """The calls of one response on their way. Whoever makes one closes it."""

    def __init__(self, calls: Sequence[tuple[ToolCall, CallRequest]], *, by: Principal) -> None:
        self.calls: list[ResponseCall] = []
        self._listening = ExitStack()
        try:
            for proposed, call in calls:
                self.calls.append(self._begin(proposed, call, by=by))
        except BaseException:
            self.close()
            raise

    def _begin(self, proposed: ToolCall, call: CallRequest, *, by: Principal) -> ResponseCall:
        try:
            if "\x00" in call.tool or not call.tool.isascii():
                raise UnknownTool("There is no tool of this name here.")
            begun = services.begin_call(call, by=by)
        except CallRefused as refused:
            return ResponseCall(proposed, refused=refused)
        except Problem as problem:  # of what became no call
            if not isinstance(problem, RateLimited) and problem.status < 500:
                count_rejected(by=by, reason=problem.reason)
            return ResponseCall(proposed, problem=problem)
        self._listening.callback(begun.close)
        return ResponseCall(proposed, begun=begun)

    @property
    def at_most_s(self) -> float:
        return max((each.begun.at_most_s for each in self.calls if each.begun), default=0.0)

    def look(self, *, last: bool) -> bool:
        """Whether there is an answer to each call. ``last``: nobody may be kept waiting any more, so there is one.

        Up to the first that goes on: all are waited for, and a hundred are not to be read again for each that ends.
        """
        for each in self.calls:
            if each.begun is not None and each.answered is None:
                each.answered = services.find_answer(each.begun, last=last or each.begun.waiter is None)
                if each.answered is None:
                    return False
        return not any(each.is_waited_for for each in self.calls)

    def _next(self) -> Any:
        return next((each.begun.waiter for each in self.calls if each.is_waited_for and each.begun), None)

    async def wait_async(self, seconds: float) -> None:
        """Until one of them may have ended; all are waited for, so it does not matter which."""
        if (waiter := self._next()) is not None:
            await waiter.wait_async(seconds)

    def wait(self, seconds: float) -> None:
        if (waiter := self._next()) is not None:
            waiter.wait(seconds)

    def close(self) -> None:
        self._listening.close()


def build_tool_result(dispatched: ResponseCall, envelope: ResponseEnvelope) -> ToolResult:
    """What the model is told."""
    invocation = dispatched.answered.invocation if dispatched.answered else None
    ms = 0.0
    if invocation is not None and invocation.finished_at is not None:
        ms = (invocation.finished_at - invocation.created_at).total_seconds() * 1000
    ran = invocation is not None and invocation.state != State.DENIED
    if envelope.error is not None:
        problem = envelope.error
        return ToolResult(
            status=choose_result_status(problem, ran=ran),
            message=" ".join(each for each in (problem.detail, problem.remedy, _when(problem)) if each),
            code=problem.reason,
            details=tuple(problem.details.get("findings", ())),
            call=dispatched.proposed,
            duration_ms=ms,
            executed=ran,
        )
    assert invocation is not None
    if invocation.is_final:
        return ToolResult(Status.OK, value=envelope.data, call=dispatched.proposed, duration_ms=ms, executed=True)
    where = f"Its answer will be found under {invocation.wire_id}."
    if invocation.state == State.HELD:
        message = f"The call waits until a person has agreed to it. {where}"
        return ToolResult(Status.NEEDS_APPROVAL, message=message, call=dispatched.proposed)
    goes_on = {"status": "running", "call": invocation.wire_id, "message": f"The call goes on. {where}"}
    return ToolResult(Status.OK, value=goes_on, call=dispatched.proposed, executed=True)


def _when(problem: Problem) -> str:
    """The model reads no field beside the sentence, and a remedy may name this one."""
    return "" if problem.retry_after is None else f"`retry_after_s` is {problem.retry_after}."


def choose_result_status(problem: Problem, *, ran: bool) -> Status:
    match problem:
        case UnknownTool():
            return Status.UNKNOWN_TOOL
        case ArgumentsTruncated():
            return Status.TRUNCATED
        case ConsentRequired() | AccountRequired():
            return Status.NEEDS_APPROVAL
        case CallCancelled():
            return Status.CANCELLED
    if problem.code is PlatformCode.TIMEOUT:
        return Status.TIMEOUT
    if problem.code is PlatformCode.INTERNAL:
        return Status.INTERNAL
    if ran:
        return Status.TOOL_ERROR
    return Status.INVALID_ARGUMENTS if problem.code is PlatformCode.INVALID_ARGUMENT else Status.DENIED
