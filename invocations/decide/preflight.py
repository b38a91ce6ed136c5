"""Preflight: whether a call may be made, and within what.

The steps of TOOLS-14 in order: the tool, input schema, grant, quota, consent, policy and profile, sandbox guard. Each shows one or
more of the rules (:mod:`invocations.decide.rules`), which only read, from one :class:`registry.decision_context.DecisionContext`. The
first that fails decides; its problem says what would allow the call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from access.budgets.chain_reservations import build_step_lines
from access.budgets.lines import BudgetLine, Demand, snapshot_lines
from access.policies.verdict import Degradation, Verdict, policy_hash, policy_label
from evidence.leaves.call_begins import PolicyDecision
from invocations.decide.fallback_models import add_fallbacks, choose_degraded
from invocations.decide.looks import CallLook
from invocations.decide.rules import RULES
from invocations.metrics.call_metrics import record_preflight
from invocations.model_calls.degraded_requests import degrade_request
from invocations.step_log import FAILED, PASSED, SKIPPED, StepLog
from kernel.problems import Problem
from registry.decision_context import load_decision_context

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from access.consents.matcher import ConsentValue
    from access.grants.matcher import GrantValue
    from access.models import ServerAccount
    from access.policies.compiler import CompiledPolicy
    from invocations.calls import CallRequest
    from invocations.decide.profiles import ResolvedProfile
    from invocations.decide.rules import Rule
    from invocations.model_calls.asked_providers import AskedProvider
    from invocations.model_calls.held_files import HeldFile
    from invocations.model_calls.model_demand import ModelDemand
    from invocations.model_calls.model_requests import ModelRequest
    from invocations.model_calls.request_data import RequestData
    from invocations.model_calls.sent_data import SentData
    from invocations.proposals.proposal_links import ProposalLink
    from invocations.sandbox.base import Profile
    from registry.decision_context import DecisionContext
    from registry.model_prefixes.models import ModelPrefix
    from registry.versions.compiler import CompiledVersion

PREFIX = "preflight."


@dataclass(slots=True)
class Preflight:
    """What was decided. ``problem`` is None exactly when the call may be made; then ``version``, ``grant`` and ``profile`` are set."""

    decision_context: DecisionContext
    version: CompiledVersion | None = None
    problem: Problem | None = None
    refused_at: str = ""
    problems: dict[str, Problem] = field(default_factory=dict)  # by step; more than one only where all were asked for
    verdict: Verdict | None = None
    decision_input: dict[str, Any] = field(default_factory=dict)
    grant: GrantValue | None = None
    consent: ConsentValue | None = None
    needs_consent: bool = False
    account: ServerAccount | None = None  # by which a server elsewhere is asked
    reach: ResolvedProfile | None = None
    demand: Demand = field(default_factory=Demand)
    model_request: ModelRequest | None = None  # of a call of a model; then `model_demand` is set as well
    model_prefix: ModelPrefix | None = None  # what the tenant says to the model first, where that is anything
    model_demand: ModelDemand | None = None
    provider: AskedProvider | None = None  # of the model
    held_files: Mapping[str, HeldFile] = field(default_factory=dict)  # that its request names, by id
    request_data: RequestData | None = None  # what kinds of data its request holds
    sent_data: SentData | None = None  # what of them its provider is sent; then `model_request` is what may be sent
    proposal: ProposalLink | None = None  # the answer of a model that proposed the call, where its caller named it
    lines: list[BudgetLine] = field(default_factory=list)
    fallbacks: list[Preflight] = field(default_factory=list)  # of the models that may answer in place of the asked one
    is_degraded: bool = False  # the first of these answers alone, by a policy
    left_out: dict[str, str] = field(default_factory=dict)  # those that may not, and why

    @property
    def version_id(self) -> UUID | None:
        return self.decision_context.installed.version_id if self.decision_context.installed else None

    @property
    def budget(self) -> list[dict[str, Any]]:
        """The budgets that the call counts against, as they were before it."""
        return snapshot_lines(self.held_lines, self.demand)

    @property
    def candidates(self) -> list[Preflight]:
        """Of a call of a model: those that may answer it, in the order in which they are asked."""
        return self.fallbacks if self.is_degraded else [self, *self.fallbacks]

    @property
    def held_lines(self) -> list[BudgetLine]:
        """The budgets that the call is reserved in: those of each model that may answer."""
        if not self.fallbacks:
            return self.lines
        return list({line.budget_id: line for each in (self, *self.fallbacks) for line in each.lines}.values())

    @property
    def obligations(self) -> list[dict[str, Any]]:
        return self.verdict.obligations if self.verdict else []

    @property
    def degradation(self) -> Degradation | None:
        return self.verdict.degradation if self.verdict else None

    @property
    def other_model(self) -> str:
        """The id of the model that a policy lets answer alone in place of this one; empty: none."""
        less = self.degradation
        return "" if less is None or less.answered_by == self.decision_context.tool else less.answered_by

    @property
    def profile(self) -> Profile | None:
        return self.reach.profile if self.reach else None

    @property
    def profile_hash(self) -> str:
        return self.reach.profile_hash if self.reach else ""

    @property
    def explanation(self) -> list[dict[str, str]]:
        return self.reach.explanation if self.reach else []

    @property
    def limiters(self) -> dict[str, str]:
        return self.reach.limiters if self.reach else {}

    @property
    def policy_label(self) -> str:
        return policy_label(self.decision_context.layers)

    @property
    def policy_hash(self) -> str:
        return compute_layers_hash(self.decision_context.layers)

    @property
    def decision(self) -> PolicyDecision | None:
        """What policy said, for evidence and for trying another policy on this call."""
        verdict = self.verdict
        if verdict is None:
            return None
        return PolicyDecision(
            allowed=verdict.allowed,
            consent=self.needs_consent,
            by_manifest=self.version is not None and self.version.needs_consent,
            rules=verdict.rules,
            degraded=verdict.degradation.to_json() if verdict.degradation and self.model_request else None,
        )


_hashes: dict[tuple[str, ...], str] = {}
MAX_HASHES = 4096


def compute_layers_hash(layers: tuple[CompiledPolicy, ...]) -> str:
    """Worked out once for each combination of documents, which never change."""
    digests = tuple(layer.digest for layer in layers)
    if digests not in _hashes:
        if len(_hashes) >= MAX_HASHES:
            _hashes.clear()
        _hashes[digests] = policy_hash(layers)
    return _hashes[digests]


def group_by_step(found: Iterable[Rule]) -> dict[str, list[Rule]]:
    """The steps in their order, with the rules that each shows."""
    steps: dict[str, list[Rule]] = {}
    for rule in found:
        steps.setdefault(rule.step, []).append(rule)
    return steps


RULES_BY_STEP = group_by_step(RULES)
STEPS = tuple(RULES_BY_STEP)
# What a step needs of those before it; where that is missing, it is skipped also when everything was asked for.
NEEDS = {name: {"tool"} for name in STEPS[1:]} | {"sandbox_guard": {"tool", "profile"}}


def check_step(step: Iterable[Rule], look: CallLook) -> str:
    """Raise what is in the way at this step; else what its rules note for the waterfall."""
    notes = [note for rule in step if (note := rule.check(look))]
    return " ".join(notes) if notes else ""


def run_preflight(
    call: CallRequest,
    decision_context: DecisionContext,
    fingerprints: dict[str, str],
    *,
    log: StepLog,
    everything: bool = False,
    stands_in: bool = False,
) -> Preflight:
    """Go through the steps until one refuses; ``log`` gets each of them, also those that were skipped.

    ``everything``: go on after a refusal with what can still be known, for explanations. ``stands_in``: for the model that was asked.
    """
    if call.chain_step is not None:
        decision_context = replace(
            decision_context, lines=build_step_lines(decision_context.lines, chain_id=call.chain_step.chain_id)
        )
    result = Preflight(decision_context)
    look = CallLook(decision_context, result, call, fingerprints)
    started_ms = log.now_ms()
    for name, step in RULES_BY_STEP.items():
        if result.problem is not None and (not everything or NEEDS.get(name, set()) & result.problems.keys()):
            log.add(PREFIX + name, "control", log.now_ms(), log.now_ms(), status=SKIPPED)
            continue
        begun, status, note = log.now_ms(), PASSED, ""
        try:
            note = check_step(step, look)
        except Problem as problem:
            status, result.problems[name] = FAILED, problem
            if result.problem is None:
                result.problem, result.refused_at = problem, name
        log.add(PREFIX + name, "control", begun, log.now_ms(), status=status, note=note)
    if call.model_operation and not stands_in:
        decide = partial(run_fallback_preflight, look, fingerprints)
        if not choose_degraded(result, decide):
            add_fallbacks(result, decide)
    if not everything and not stands_in:  # those that explain look further than a call needs
        record_preflight((log.now_ms() - started_ms) / 1000, allowed=result.problem is None)
    return result


def run_fallback_preflight(look: CallLook, fingerprints: dict[str, str], name: str) -> Preflight:
    """What would be decided about a call if it asked the model of this name, with no more tools. Its key was looked at."""
    asked, stand_in = look.decision_context, replace(look.call, tool=name)
    context = load_decision_context(tenant_id=asked.tenant_id, agent_id=asked.agent_id, tool=name, now=asked.at)
    found = run_preflight(stand_in, context, fingerprints, log=StepLog(asked.at), stands_in=True)
    if found.model_request is not None:
        found.model_request = degrade_request(found.model_request, look.verdict.degradation)
    return found
