"""Calls: what a caller wants, and what it gets.

A :class:`CallRequest` is the wish, :class:`IncomingCall` what is decided about, :class:`AnsweredCall` the row that it became,
:class:`CallRefused` the row of a call that may not be made.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evidence import services as evidence
from invocations.accept.earlier_requests import EarlierRequest
from invocations.answer.wake_ups import Waiter, get_waker
from invocations.models import Invocation, Origin
from kernel.canonical import encode_hash_input

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from access.budgets.lines import Demand
    from evidence.models import Snapshot, SubjectKey
    from invocations.agent_runs.models import AgentRunStep
    from invocations.chains.models import ChainStep
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.held_files import HeldFile
    from kernel.http.envelopes import RequestEnvelope
    from kernel.principal import Principal
    from kernel.problems import Problem
    from registry.decision_context import DecisionContext
    from unitools.calls import ToolSpec


@dataclass(frozen=True)
class CallRequest:
    """What the caller wants: a tool by name, arguments, and the SPEC-1 envelope around them.

    ``arguments`` is an object, or None where it is only asked what a call would have to pass.
    """

    tool: str
    arguments: Any
    envelope: RequestEnvelope
    origin: Origin = Origin.API
    proposal: str = ""  # what the model that proposed the call named it by
    scope: str = ""  # that the caller's credential must carry; empty where none was shown, as for a step of a chain
    respond_async: bool = False
    wait_s: float | None = None  # how long the caller wants to wait at most; None: it did not say
    chain_step: ChainStep | None = None  # of the chain whose call this is
    run_step: AgentRunStep | None = None  # of the agent run whose call this is
    model_operation: str = ""  # what a model is asked for: chat, embed or rerank; empty: this is the call of a tool
    shown_tools: tuple[ToolSpec, ...] = ()  # those that the model may propose calls of
    held_files: Mapping[str, HeldFile] = field(default_factory=dict)  # that a request to a model names, by id
    own_tools: int = 0  # how many of these, the last ones, the caller has described itself
    unusable: Problem | None = None  # why the arguments that a model wrote cannot be used; such a call never runs

    @property
    def is_step(self) -> bool:
        """Whether it is one of several that the hub makes, whose messages go out when all of a turn is committed."""
        return self.chain_step is not None or self.run_step is not None

    @property
    def has_arguments(self) -> bool:
        return self.arguments is not None

    @cached_property
    def body(self) -> bytes:
        """The arguments as the bytes that are counted and hashed."""
        return encode_hash_input(self.arguments)[1]


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """A call on its way in: who makes it, what decides about it at this moment, and the id of its row, whatever becomes of it."""

    call: CallRequest
    by: Principal
    decision_context: DecisionContext
    fingerprints: dict[str, str]
    id: UUID
    while_committing: Callable[[Invocation, Preflight], object] | None = None  # once it is accepted
    earlier: EarlierRequest = field(default_factory=EarlierRequest)
    key: SubjectKey | None = None  # of its values, as it was read before; None: it is asked for with the first of them


@dataclass(slots=True)
class BegunCall:
    """A call that was made, or an earlier one that stands for it. ``waiter`` hears of its end; None: nobody waits for it.

    ``replay`` is told of the earlier call once it has ended and is answered again. ``notices``: what the caller should know of the
    request, beside the answer. ``preflight``: what allowed a call of a model, for whoever runs it now; ``demand``: the most that the
    call may take. Whoever gets one of these closes it.
    """

    invocation: Invocation
    waiter: Waiter | None = None
    at_most_s: float = 0
    replay: Callable[[Invocation], object] | None = None
    notices: tuple[str, ...] = ()
    preflight: Preflight | None = None
    demand: Demand | None = None
    _listening: ExitStack = field(default_factory=ExitStack)

    def listen(self, *, at_most_s: float) -> None:
        self.waiter = self._listening.enter_context(get_waker().listen(self.invocation.pk))
        self.at_most_s = at_most_s

    def close(self) -> None:
        self._listening.close()


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """The row after the wait. It may still be running. ``replayed``: an earlier call with the same key was answered again.

    ``whole_data``: the value, where more of it is at hand than is stored. ``sealed``: its snapshots, if they were read with it.
    """

    invocation: Invocation
    replayed: bool = False
    notices: tuple[str, ...] = ()
    whole_data: dict[str, Any] | None = None
    sealed: list[Snapshot] | None = None


class CallRefused(Exception):
    """Carries a refused call to the edge: the problem, and the row that witnesses it."""

    def __init__(self, problem: Problem, invocation: Invocation, preflight: Preflight | None = None) -> None:
        self.problem, self.invocation, self.preflight = problem, invocation, preflight
        super().__init__(problem.detail)


def name_person(envelope: RequestEnvelope, *, by: Principal) -> RequestEnvelope:
    """For whom it is asked: where a program names nobody, it is the person who has let it act as the agent. What is kept is kept as
    that person's, and goes when they are erased."""
    if by.connection is None or envelope.user_id:
        return envelope
    return replace(envelope, user_id=by.connection.member)


def compute_fingerprints(call: CallRequest, by: Principal) -> dict[str, str]:
    envelope = call.envelope
    rest = {
        "currency": envelope.currency,
        "dry_run": envelope.dry_run,
        "locale": envelope.locale,
        "timezone": envelope.timezone,
        "tool": call.tool,
    }  # answers differ by them
    body = (
        b'{"arguments":' + call.body + b"," + encode_hash_input(rest)[1][1:]
    )  # one document; "arguments" sorts before the rest
    return {
        "arguments_fingerprint": evidence.compute_fingerprint(body, tenant_id=by.tenant_id),
        "user_fingerprint": evidence.compute_user_fingerprint(envelope.user_id, tenant_id=by.tenant_id),
    }
