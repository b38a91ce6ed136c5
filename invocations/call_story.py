"""Call story: what happened in a call, for people: who asked, with what, what came back, what it took and rested on, and what helps.

Made of the row, its Begin and its End. What a call carried is sealed: of that the story has the form, and no value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext

from invocations.approvals.asked_consents import can_ask_consent
from invocations.call_costs.models import CallCost
from invocations.call_outcomes import CallOutcome, classify_call
from invocations.problems import OutcomeUnknown, RunCancelled, find_cut_remedy
from invocations.run_profiles.services import find_profile_document
from kernel.components.quantities import number
from kernel.problems import find_problem_class

if TYPE_CHECKING:
    from invocations.models import Invocation
    from kernel.principal import Principal
    from kernel.problems import Problem
    from registry.models import ToolVersion

FAULTS = (CallOutcome.FAILED, CallOutcome.DENIED, CallOutcome.REFUSED, CallOutcome.UNKNOWN)
LACKS_GRANT = ("AUTH.NO_GRANT", "AUTH.SCOPE_MISSING", "AUTH.CONDITION_UNMET")
LACKS_CONSENT = "POLICY.CONSENT_"


@dataclass(frozen=True, slots=True)
class CarriedValue:
    """An argument by its name: ``words`` say what kind of value it was, and how long."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class NextStep:
    label: str
    icon: str
    url: str


@dataclass(frozen=True, slots=True)
class CallStory:
    """``outcome`` decides the tone; ``rules``: of the policies that contributed; ``took``: of the run, None before one."""

    outcome: CallOutcome
    arguments: list[CarriedValue]
    input_bytes: int | None
    output_bytes: int | None
    run: dict[str, Any]
    limits: dict[str, Any]  # of the run; empty when they are not known
    cost: CallCost | None
    rules: list[str]
    refused_at: str
    problem: type[Problem] | None
    cure: str
    steps: list[NextStep]

    @property
    def is_fault(self) -> bool:
        return self.outcome in FAULTS


def tell_story(invocation: Invocation, begin: dict[str, Any], end: dict[str, Any], *, by: Principal) -> CallStory:
    """``begin`` and ``end``: the data of the leaves, empty where there is none."""
    outcome = classify_call(invocation.state, invocation.reason)
    problem = find_problem_class(invocation.reason) if invocation.reason else None
    return CallStory(
        outcome=outcome,
        arguments=_describe_arguments((begin.get("input") or {}).get("shape")),
        input_bytes=(begin.get("input") or {}).get("bytes"),
        output_bytes=(end.get("output") or {}).get("bytes"),
        run=end.get("run") or {},
        limits=_find_limits(invocation),
        cost=CallCost.objects.filter(invocation_id=invocation.pk).first(),
        rules=(begin.get("decision") or {}).get("rules") or [],
        refused_at=begin.get("refused_at") or "",
        problem=problem,
        cure=_find_cure(problem, invocation.version),
        steps=list_next_steps(invocation, by=by) if outcome in FAULTS else [],
    )


def _find_cure(problem: type[Problem] | None, version: ToolVersion | None) -> str:
    """Of a run that was cut off it depends on the tool."""
    if problem is None:
        return ""
    return find_cut_remedy(version) if problem in (OutcomeUnknown, RunCancelled) else problem.cure


def _find_limits(invocation: Invocation) -> dict[str, Any]:
    found = find_profile_document(invocation) if invocation.profile_hash else None
    limits = found.get("limits") if isinstance(found, dict) else None
    return limits if isinstance(limits, dict) else {}


def _describe_arguments(shape: Any) -> list[CarriedValue]:
    """Also of what lies within others, by its path."""
    if not isinstance(shape, dict):
        return []
    return [found for name, kind in shape.items() for found in _describe_value(str(name), kind)]


def _describe_value(path: str, kind: Any) -> list[CarriedValue]:
    if isinstance(kind, dict):
        return [found for name, each in kind.items() for found in _describe_value(f"{path}.{name}", each)]
    if isinstance(kind, list):
        return [found for each in kind for found in _describe_value(f"{path}[]", each)] or [
            CarriedValue(path, gettext("a list"))
        ]
    return [CarriedValue(path, _read_kind(str(kind)))]


def _read_kind(kind: str) -> str:
    """``string(9)``: a text of nine characters."""
    word, _, length = kind.rstrip(")").partition("(")
    if word == "string" and length.isdigit():
        return gettext("text, %(n)s characters") % {"n": number(int(length))}
    words = {
        "string": gettext("text"),
        "number": gettext("a number"),
        "integer": gettext("a number"),
        "boolean": gettext("yes or no"),
        "array": gettext("a list"),
        "object": gettext("an object"),
    }
    return words.get(word, kind)


def list_next_steps(invocation: Invocation, *, by: Principal) -> list[NextStep]:
    """What somebody may do who wants such a call to go well, the most fitting first."""
    reason, tool = invocation.reason, invocation.tool
    found: list[NextStep] = []
    if reason.startswith(LACKS_GRANT):
        asked = urlencode({"tools": tool, "agent": invocation.agent.wire_id})
        if by.may("grants.give"):
            found.append(NextStep(gettext("Give this grant"), "handshake", f"{reverse('grant_new')}?{asked}"))
        elif by.may("grants.request"):
            found.append(NextStep(gettext("Ask for this grant"), "hand", f"{reverse('grant_request_new')}?{asked}"))
    elif reason.startswith(LACKS_CONSENT):
        found += _list_consent_steps(invocation, by=by)
    elif reason == "POLICY.HALTED" and by.may("halts.throw"):
        found.append(NextStep(gettext("See what is stopped"), "hand", reverse("halts")))
    elif reason == "POLICY.DENY_TOOL" and by.may("policies.view"):
        found.append(NextStep(gettext("See the policies"), "scale", reverse("policies")))
    elif reason.startswith("QUOTA.") and by.may("budgets.view"):
        found.append(NextStep(gettext("See the budgets"), "timer", f"{reverse('budgets')}?state=nearly"))
    elif reason.startswith("TOOL.") and by.may("tools.view") and invocation.installation_id:
        found.append(NextStep(gettext("See the installation"), "package", reverse("installation", args=[tool])))
    asked = urlencode({"agent": invocation.agent.wire_id, "tool": tool})
    found.append(NextStep(gettext("Explain"), "search", f"{reverse('explain')}?{asked}"))
    if by.may("playground.use") and invocation.version:
        page, version = reverse("tool_try", args=[tool]), invocation.version.version
        found.append(NextStep(gettext("Try again"), "play", f"{page}?{urlencode({'version': version})}"))
    if invocation.is_final and invocation.attempt and by.may("invocations.replay"):
        found.append(NextStep(gettext("Try again in a sandbox"), "repeat", reverse("replay_new", args=[invocation.pk])))
    return found


def _list_consent_steps(invocation: Invocation, *, by: Principal) -> list[NextStep]:
    found = []
    if can_ask_consent(invocation, by=by):
        found.append(NextStep(gettext("Ask for consent"), "user-check", reverse("consent_ask", args=[invocation.pk])))
    if by.may("consents.view"):
        consent = invocation.consent_id
        url = reverse("consent", args=[consent]) if consent else reverse("approvals")
        found.append(NextStep(gettext("See the consents that wait"), "hourglass", url))
    return found
