"""Transcript: a conversation of the playground as somebody reads it, with what was decided about each proposed call.

Words are opened from where they are sealed: the question with the run, answers with their calls. Each first look of a person at a
value is a fact. Whoever sent the message reads question and answer as they are; to others personal data in them is masked, as it is
to everybody in what tools were given and have answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Sum
from django.utils.translation import gettext

from access.consents.services import check_can_decide
from access.models import Consent, ConsentState
from access.redaction import masked_view
from evidence.models import SnapshotKind
from invocations.agent_runs.answers import group_calls_by_step
from invocations.agent_runs.models import AgentRunStep, AgentRunStepRole, AgentRunStepState
from invocations.agent_runs.run_words import read_run_words
from invocations.agent_runs.services import sum_cost
from invocations.call_costs.models import CallCost
from invocations.models import Invocation, State
from invocations.playground.models import PlaygroundConversation
from invocations.playground.value_reader import ValueReader
from kernel.problems import Problem, find_problem_class

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from uuid import UUID

    from invocations.agent_runs.models import AgentRun
    from invocations.playground.models import PlaygroundMessage, PlaygroundSide
    from kernel.principal import Principal

READ_OWN = "A person reads their own conversation in the playground."
READ_OTHERS = (
    "Somebody who decides on consents reads a conversation of the playground in which a call has asked for one."
)
PLACES = (1, 2)  # where the sides of a message stand
# What became of a proposed call, from its row's state; a consent of its own says more.
DECISIONS = {
    State.DENIED: "refused",
    State.HELD: "held",
    State.EXPIRED: "expired",
    State.CANCELLED: "cancelled",
}
# In other states the consent names somebody else, such as who has revoked it, or nobody.
NAMES_DECIDER = frozenset({ConsentState.APPROVED, ConsentState.USED, ConsentState.DENIED})


@dataclass(slots=True)
class ProposedCall:
    """``decision``: allowed, approved, denied (by a person), refused, held, expired, cancelled or waiting. ``why_not``: why this
    reader does not decide on what is held; empty: may. ``together``: how many calls wait for the same consent; ``waits_above``:
    one that stands above is among them, and the decision is made there.
    """

    step: AgentRunStep
    decision: str
    call: Invocation | None = None
    arguments: Any = None
    unusable: str = ""
    is_erased: bool = False
    problem: type[Problem] | None = None
    consent: Consent | None = None
    why_not: str = ""
    together: int = 0
    waits_above: bool = False
    result: Any = None
    has_result: bool = False
    form: Any = None  # the page's, with which this reader decides, and what may be approved with it
    modes: list[str] = field(default_factory=list)

    @property
    def may_decide(self) -> bool:
        return self.is_held and self.consent is not None and not self.why_not and not self.waits_above

    @property
    def is_held(self) -> bool:
        return self.decision == "held"

    @property
    def is_decided(self) -> bool:
        """Whether the consent names who has decided on this very call."""
        if self.consent is None or self.is_held:
            return False
        return self.decision == "denied" or (
            _has_asked(self.call, self.consent) and self.consent.state in NAMES_DECIDER
        )


@dataclass(slots=True)
class AnsweredTurn:
    """One answer of the model, with the calls that it proposes."""

    step: AgentRunStep
    text: str = ""
    is_erased: bool = False
    proposals: list[ProposedCall] = field(default_factory=list)


@dataclass(slots=True)
class SideView:
    """What became of a message at one model."""

    side: PlaygroundSide
    turns: list[AnsweredTurn] = field(default_factory=list)
    problem: type[Problem] | None = None
    micros: int = 0
    unpriced: int = 0
    tokens: int = 0

    @property
    def run(self) -> AgentRun | None:
        return self.side.run

    @property
    def is_open(self) -> bool:
        return self.side.run is not None and not self.side.run.is_final

    @property
    def words(self) -> str:
        """What the model that is being asked has said so far; for whoever sent the message, since nothing of it is masked."""
        return read_run_words(self.side.run) if self.side.run is not None and self.is_open else ""

    @property
    def waits_for_reader(self) -> bool:
        return any(call.may_decide for turn in self.turns for call in turn.proposals)

    @property
    def is_followed(self) -> bool:
        """Whether the page looks again by itself: not while somebody writes a decision into it."""
        return self.is_open and not self.waits_for_reader


@dataclass(slots=True)
class MessageView:
    message: PlaygroundMessage
    text: str = ""
    is_erased: bool = False
    tools: list[str] = field(default_factory=list)
    sides: list[SideView] = field(default_factory=list)


class Transcript:
    """The messages of a conversation, or some of them, as ``by`` sees them. ``places``: which of their sides are read."""

    def __init__(
        self,
        conversation: PlaygroundConversation,
        messages: Sequence[PlaygroundMessage],
        *,
        by: Principal,
        places: Collection[int] = PLACES,
    ) -> None:
        self.conversation, self.by, self.places = conversation, by, places
        sides = [side for message in messages for side in message.list_sides() if side.place in places]
        runs = [side.run for side in sides if side.run is not None]
        self._steps = {run.pk: list(run.steps.order_by("position")) for run in runs}
        self._calls = {run.pk: group_calls_by_step(run) for run in runs}
        asked = [run for message in messages if (run := _find_first_run(message)) is not None]
        ids = {run.pk for run in asked} | {
            call.pk for calls in self._calls.values() for each in calls.values() for call in each
        }
        self._is_own = conversation.person == by.id
        self._reader = ValueReader(ids, reason=READ_OWN if self._is_own else READ_OTHERS, by=by)
        self._consents = _load_consents(self._calls.values())
        self._waiting = _group_waiting(messages)
        self._tokens = _sum_tokens(runs)
        self.messages = [self._view_message(message) for message in messages]

    def _show(self, text: str) -> str:
        return text if self._is_own else str(masked_view(text))

    def _view_message(self, message: PlaygroundMessage) -> MessageView:
        view = MessageView(message)
        view.sides = [self._view_side(side) for side in message.list_sides() if side.place in self.places]
        first = _find_first_run(message)
        sealed = self._reader.read(first.pk, SnapshotKind.INPUT) if first is not None else None
        if sealed is None:
            view.is_erased = True
            return view
        arguments = sealed["question"]["arguments"]
        view.text = self._show(arguments["messages"][-1]["segments"][0]["text"])
        view.tools = list(arguments.get("tools", ()))
        return view

    def _view_side(self, side: PlaygroundSide) -> SideView:
        view = SideView(side)
        run = side.run
        reason = side.reason if run is None else run.reason
        view.problem = find_problem_class(reason) if reason else None
        if run is None:
            return view
        cost = sum_cost(run)
        view.micros, view.unpriced, view.tokens = cost.micros, cost.unpriced, self._tokens.get(run.pk, 0)
        proposals: list[dict[str, Any]] = []
        for step in self._steps[run.pk]:
            calls = self._calls[run.pk].get(step.pk, [])
            call = calls[-1] if calls else None
            if step.role == AgentRunStepRole.MODEL:
                turn = AnsweredTurn(step)
                proposals = self._read_answer(turn, call)
                view.turns.append(turn)
            else:
                turn = view.turns[-1]
                place = step.position - turn.step.position - 1
                proposed = proposals[place] if place < len(proposals) else None
                turn.proposals.append(self._view_call(step, call, proposed))
        return view

    def _read_answer(self, turn: AnsweredTurn, call: Invocation | None) -> list[dict[str, Any]]:
        """What it proposes; its text goes into the turn."""
        if call is None or call.state != State.SUCCEEDED:
            return []
        data = (self._reader.read(call.pk, SnapshotKind.OUTPUT) or {}).get("data")
        if not isinstance(data, dict):
            turn.is_erased = True
            return []
        turn.text = self._show(data.get("text") or "")
        return list(data.get("proposals", ()))

    def _view_call(self, step: AgentRunStep, call: Invocation | None, proposed: dict[str, Any] | None) -> ProposedCall:
        consent = self._consents.get(call.pk) if call is not None else None
        view = ProposedCall(step, _find_decision(step, call, consent), call=call, consent=consent)
        reason = step.reason or (call.reason if call is not None else "")
        view.problem = find_problem_class(reason) if reason else None
        manifest = call.version.view if call is not None and call.version is not None else None
        if proposed is None:
            view.is_erased = True
        elif proposed.get("arguments") is None:
            view.unusable = str(masked_view(proposed.get("detail") or ""))
        else:
            view.arguments = masked_view(proposed["arguments"], manifest.input_schema if manifest else None)
        if view.is_held and consent is not None:
            waiting = self._waiting.get(consent.pk, [])
            view.together, view.waits_above = len(waiting), step.pk not in waiting[:1]
            view.why_not = self._why_not(consent)
        if call is not None and call.state == State.SUCCEEDED:
            sealed = self._reader.read(call.pk, SnapshotKind.OUTPUT)
            view.has_result = sealed is not None
            view.result = masked_view((sealed or {}).get("data"), manifest.output_schema if manifest else None)
        return view

    def _why_not(self, consent: Consent) -> str:
        if not self.by.may("consents.decide"):
            return gettext("Somebody who may decide on consents decides on this call.")
        try:
            check_can_decide(consent, by=self.by)
        except Problem as problem:
            return problem.detail
        return ""


def _find_first_run(message: PlaygroundMessage) -> AgentRun | None:
    """The one that the question is read from."""
    return next((side.run for side in message.list_sides() if side.run is not None), None)


def _find_decision(step: AgentRunStep, call: Invocation | None, consent: Consent | None) -> str:
    if call is None:
        if step.state == AgentRunStepState.FAILED:
            return "refused"
        return "cancelled" if step.state == AgentRunStepState.SKIPPED else "waiting"
    if consent is not None and call.state != State.HELD:
        if consent.state == ConsentState.DENIED:
            return "denied"
        if consent.decided_at is not None and _has_asked(call, consent) and call.state not in DECISIONS:
            return "approved"
    return DECISIONS.get(State(call.state), "allowed")


def _has_asked(call: Invocation | None, consent: Consent) -> bool:
    """Whether it was asked for by this call; other calls rest on it as long as it is valid."""
    return call is not None and consent.invocation_id == call.pk


def _group_waiting(messages: Sequence[PlaygroundMessage]) -> dict[UUID, list[UUID]]:
    """Ids of the steps whose calls wait for each consent, in the order of the page."""
    rows = AgentRunStep.objects.filter(
        run__playground_side__message__in=[message.pk for message in messages],
        calls__state=State.HELD,
        calls__consent__isnull=False,
    ).order_by("run__playground_side__message__number", "run__playground_side__place", "position")
    found: dict[UUID, list[UUID]] = {}
    for consent, step in rows.values_list("calls__consent_id", "pk"):
        found.setdefault(consent, []).append(step)
    return found


def _load_consents(calls: Iterable[dict[UUID, list[Invocation]]]) -> dict[UUID, Consent]:
    """By the id of the call for which a person was asked, or that a consent let through."""
    wanted = {call.pk: call.consent_id for each in calls for made in each.values() for call in made if call.consent_id}
    found = {row.pk: row for row in Consent.objects.filter(pk__in=set(wanted.values())).select_related("agent")}
    return {call: found[consent] for call, consent in wanted.items() if consent in found}


def _sum_tokens(runs: list[AgentRun]) -> dict[UUID, int]:
    rows = CallCost.objects.filter(invocation__run_step__run__in=[run.pk for run in runs])
    sums = rows.values("invocation__run_step__run").annotate(tokens=Sum("input_tokens") + Sum("output_tokens"))
    return {each["invocation__run_step__run"]: each["tokens"] or 0 for each in sums.order_by()}


class ConversationTotals(NamedTuple):
    """What a conversation has taken so far. ``unpriced``: how many of its calls have no known price, and are in no sum."""

    micros: int
    unpriced: int
    tokens: int


def sum_conversation(conversation: PlaygroundConversation) -> ConversationTotals:
    steps = AgentRunStep.objects.filter(run__playground_side__message__conversation=conversation)
    cost = steps.aggregate(micros=Sum("cost_micros"), unpriced=Sum("unpriced"))
    calls = CallCost.objects.filter(invocation__run_step__run__playground_side__message__conversation=conversation)
    tokens = calls.aggregate(tokens=Sum("input_tokens") + Sum("output_tokens"))["tokens"]
    return ConversationTotals(cost["micros"] or 0, cost["unpriced"] or 0, tokens or 0)


def find_waiting(by: Principal) -> list[tuple[Invocation, UUID]]:
    """Calls of other people's conversations that wait for a decision, the oldest first, each with the id of its conversation."""
    if not by.may("consents.decide"):
        return []
    rows = Invocation.objects.filter(
        tenant_id=by.tenant_id,
        state=State.HELD,
        consent__isnull=False,
        run_step__run__playground_side__isnull=False,
    )
    rows = rows.exclude(run_step__run__playground_side__message__conversation__person=by.id).filter(
        run_step__run__playground_side__message__conversation__in=PlaygroundConversation.objects.visible_to(by)
    )
    found = rows.select_related("run_step__run__playground_side__message").order_by("id")[:20]
    return [
        (row, row.run_step.run.playground_side.message.conversation_id) for row in found if row.run_step is not None
    ]
