"""Call outcomes: how people tell the ends of calls apart.

A state alone does not: a tool that answers "out of stock" has done its work, and one that crashed has not, and both calls have failed.
Which answers are a tool's lawful no, its problems say (:attr:`kernel.problems.Problem.refusal_of_tool`).
"""

from __future__ import annotations

from django.db.models import Q, TextChoices
from django.utils.translation import gettext_lazy

from invocations.end.problems import DOMAIN_PROBLEMS
from invocations.models import FINAL, State
from invocations.problems import OutcomeUnknown
from invocations.sandbox.problems import ServiceAnswerLost
from invocations.unfinished_calls.models import build_unfinished_filter

REFUSALS = frozenset(cls.reason for cls in DOMAIN_PROBLEMS.values() if cls.refusal_of_tool)

# Of every call whose outcome is unknown: the end of a call insists on it.
UNKNOWN_OUTCOMES = (OutcomeUnknown.reason, ServiceAnswerLost.reason)


class CallOutcome(TextChoices):
    """In the order in which charts stack them."""

    SUCCEEDED = "succeeded", gettext_lazy("Succeeded")
    REFUSED = "tool_refused", gettext_lazy("Refused by the tool")
    DENIED = "denied", gettext_lazy("Denied")
    FAILED = "faulty", gettext_lazy("Failed")
    UNKNOWN = "outcome_unknown", gettext_lazy("Outcome unknown")
    ABANDONED = "abandoned", gettext_lazy("Cancelled or expired")
    OPEN = "under_way", gettext_lazy("Not ended yet")


# Their colours in charts.
TONES = {
    CallOutcome.SUCCEEDED: "ok",
    CallOutcome.REFUSED: "said",
    CallOutcome.DENIED: "denied",
    CallOutcome.FAILED: "bad",
    CallOutcome.UNKNOWN: "unknown",
    CallOutcome.ABANDONED: "quiet",
    CallOutcome.OPEN: "open",
}

_OF_STATE = {
    State.SUCCEEDED: CallOutcome.SUCCEEDED,
    State.DENIED: CallOutcome.DENIED,
    State.FAILED: CallOutcome.FAILED,
    State.TIMED_OUT: CallOutcome.FAILED,
    State.OUTCOME_UNKNOWN: CallOutcome.UNKNOWN,
    State.CANCELLED: CallOutcome.ABANDONED,
    State.EXPIRED: CallOutcome.ABANDONED,
}


def classify_call(state: str, reason: str) -> CallOutcome:
    if state == State.FAILED and reason in REFUSALS:
        return CallOutcome.REFUSED
    return _OF_STATE[State(state)] if state in FINAL else CallOutcome.OPEN


def build_state_filter(state: str) -> Q:
    """The calls of this state, by what finds them: no index of calls says the state, which changes too often."""
    if state == State.OUTCOME_UNKNOWN:
        return Q(state=state, reason__in=UNKNOWN_OUTCOMES) & ~Q(reason="")
    return Q(state=state) if state in FINAL else Q(state=state) & build_unfinished_filter(state=state)


def build_outcome_filter(outcome: CallOutcome) -> Q:
    """The calls that :func:`classify_call` calls so."""
    refused = Q(state=State.FAILED, reason__in=sorted(REFUSALS))
    if outcome is CallOutcome.REFUSED:
        return refused
    if outcome is CallOutcome.OPEN:
        return build_unfinished_filter()
    if outcome is CallOutcome.UNKNOWN:
        return build_state_filter(State.OUTCOME_UNKNOWN)
    states = [str(state) for state, meant in _OF_STATE.items() if meant is outcome]
    return Q(state__in=states) & ~refused if outcome is CallOutcome.FAILED else Q(state__in=states)
