"""May this call be made, and within what?

The steps of TOOLS-14 in order: the tool, input schema, grant, quota, consent, policy and profile, sandbox guard. They only
read, from one :class:`registry.decision_context.DecisionContext`. The first that fails decides; its problem says what would
allow the call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from access.budgets.chain_reservations import build_step_lines
from access.budgets.lines import BudgetLine, Demand, check_budgets, filter_by_grants, snapshot_lines
from access.budgets.rate_limits import check_rates
from access.consents.matcher import find_matching_consent, list_misfits
from access.consents.services import ASKING
from access.grants.matcher import CallRequirements, check_granted
from access.models import ConsentMode
from access.policies.clauses import MODES
from access.policies.verdict import Verdict, evaluate_policies, policy_hash, policy_label
from access.problems import ConsentRequired, QuotaExceeded
from invocations.decide.decision_input import build_attributes, redact_attributes
from invocations.decide.input_validation import check_input
from invocations.decide.policy_denial import build_policy_denial
from invocations.decide.profiles import ResolvedProfile, resolve_profile
from invocations.end.egress_report import suggest_remedy
from invocations.metrics.call_metrics import count_validation, record_preflight
from invocations.problems import CapabilityBlocked
from invocations.sandbox.factory import current_sandbox
from invocations.step_log import FAILED, PASSED, SKIPPED, StepLog
from kernel.ids import encode
from kernel.problems import Forbidden, Problem
from registry.dependencies import check_ready
from registry.tools.callability import check_callable, check_model
from unitools.capabilities import list_missing_capabilities

if TYPE_CHECKING:
    from uuid import UUID

    from access.consents.matcher import ConsentValue
    from access.grants.matcher import GrantValue
    from access.policies.compiler import CompiledPolicy
    from invocations.calls import CallRequest
    from invocations.sandbox.base import Profile
    from registry.decision_context import DecisionContext
    from registry.versions.compiler import CompiledVersion

STEPS = ("tool", "input_schema", "grant", "quota", "consent", "profile", "sandbox_guard")
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
    reach: ResolvedProfile | None = None
    demand: Demand = field(default_factory=Demand)
    lines: list[BudgetLine] = field(default_factory=list)

    @property
    def version_id(self) -> UUID | None:
        return self.decision_context.installed.version_id if self.decision_context.installed else None

    @property
    def budget(self) -> list[dict[str, Any]]:
        """The budgets that the call counts against, as they were before it."""
        return snapshot_lines(self.lines, self.demand)

    @property
    def obligations(self) -> list[dict[str, Any]]:
        return self.verdict.obligations if self.verdict else []

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
    def decision(self) -> dict[str, Any]:
        """What policy said, for evidence and for trying another policy on this call."""
        verdict = self.verdict
        if verdict is None:
            return {}
        return {
            "allowed": verdict.allowed,
            "consent": self.needs_consent,
            "by_manifest": self.version is not None and self.version.needs_consent,
            "rules": verdict.rules,
        }


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


def build_grant_query(version: CompiledVersion, decision_context: DecisionContext, arguments: Any) -> CallRequirements:
    """The call as far as grants decide about it."""
    return CallRequirements(
        tool=version.subject,
        agent_id=decision_context.agent_id,
        agent_name=decision_context.agent_name,
        arguments=arguments,
        scopes=version.scopes,
        capabilities=version.manifest.capabilities,
    )


class _Steps:
    """The steps of one decision; each raises what is in the way, and returns a note for the waterfall."""

    def __init__(self, result: Preflight, call: CallRequest, fingerprints: dict[str, str]) -> None:
        self.result, self.call, self.fingerprints = result, call, fingerprints
        self.decision_context, self.now = result.decision_context, result.decision_context.at
        self.dry_run = call.envelope.dry_run
        self.size = 0
        self.grants: list[GrantValue] = []

    @property
    def version(self) -> CompiledVersion:
        assert self.result.version is not None
        return self.result.version

    @property
    def verdict(self) -> Verdict:
        """What policy says; asked once, as soon as a step needs to know."""
        if self.result.verdict is None:
            consent = self._consent_within(self.version.manifest.consent_scope) is not None
            asked = build_attributes(self.call, self.version, self.decision_context, size=self.size, consent=consent)
            self.result.verdict = evaluate_policies(self.decision_context.layers, asked)
            self.result.decision_input = redact_attributes(
                asked, self.decision_context.layers, self.version.manifest.models
            )
        return self.result.verdict

    def _binding(self) -> dict[str, Any]:
        """What a consent may be bound to."""
        assert self.decision_context.installed is not None
        return {
            "version": self.decision_context.installed.version,
            "user_fingerprint": self.fingerprints["user_fingerprint"],
            "arguments_fingerprint": self.fingerprints["arguments_fingerprint"],
            "policy_hash": self.result.policy_hash,
            "now": self.now,
        }

    def _consent_within(self, widest: str, *, validity_s: int | None = None) -> ConsentValue | None:
        """The consent that the call goes ahead with, if it is no wider than may be, nor older than a policy lets it become."""
        if not self.decision_context.consents:
            return None
        narrow = [
            each
            for each in self.decision_context.consents
            if MODES.index(each.mode) >= MODES.index(widest) and each.is_younger_than(validity_s, self.now)
        ]
        return find_matching_consent(narrow, **self._binding())

    def _is_harmless_dry(self) -> bool:
        """Consent is for the effect. What only reads does the same in a dry run, so it is asked for there too."""
        return self.version.manifest.side_effect not in ("None", "Read")

    def tool(self) -> str:
        self.result.version = check_callable(self.decision_context)
        check_model(self.result.version.manifest, self.call.envelope.client.get("model", ""))
        assert self.decision_context.installed is not None
        return self.decision_context.installed.version

    def input_schema(self) -> str | None:
        if not self.call.has_arguments:
            return "asked without arguments"
        self.size = len(self.call.body)
        if self.call.unusable is not None:
            count_validation("input", valid=False)
            raise self.call.unusable
        check_input(self.version, self.call.arguments, self.call.body, today=self.now.date())
        return None

    def grant(self) -> str:
        if not self.decision_context.agent_in_use:
            raise Forbidden(
                f"The agent {self.decision_context.agent_name} is disabled.", remedy="Ask an operator to enable it."
            )
        if self.decision_context.key_in_force is False:
            raise Forbidden("The key of this call was revoked or has expired.", remedy="Use the key that replaces it.")
        wanted = build_grant_query(self.version, self.decision_context, self.call.arguments)
        grants = self.decision_context.grants
        if not self.call.has_arguments:  # what they ask of arguments is told, not held against anything
            grants = tuple(grant._replace(conditions=()) for grant in grants)
        self.grants = check_granted(grants, wanted, now=self.now)
        self.result.grant = self.grants[0]
        return self.grants[0].tools

    def _reach(self, grant: GrantValue | None) -> ResolvedProfile:
        installed = self.decision_context.installed
        assert installed is not None
        return resolve_profile(
            self.version.asks,
            self.verdict,
            grant=grant.capabilities if grant else None,
            hosts=installed.hosts,
            paths=installed.paths,
            dry_run=self.dry_run,
            isolation=self.version.isolation,
            idle_ms=self.version.idle_ms,
        )

    def quota(self) -> None:
        """The first grant whose budgets, with those of tenant, agent and tool, have room for the call."""
        refusals: list[QuotaExceeded] = []
        candidates: list[GrantValue | None] = [*self.grants] or [None]
        for grant in candidates:
            reach = self._reach(grant)
            limits = reach.profile.limits
            demand = Demand(
                bytes_in=self.size,
                bytes_out=limits.result_bytes + limits.artifact_bytes,
                cpu_ms=limits.cpu_s * 1000,
                money=self.verdict.price_micros,
            )
            lines = filter_by_grants(self.decision_context.lines, grant.ids if grant else ())
            self.result.demand, self.result.lines = demand, lines
            try:
                check_budgets(lines, demand, self.now)
                check_rates(lines)
            except QuotaExceeded as refusal:
                refusals.append(refusal)
            else:
                self.result.grant = grant
                return
        raise min(
            refusals, key=lambda refusal: refusal.retry_after or float("inf")
        )  # the grant that serves again first

    def consent(self) -> str:
        manifest, demanded = self.version.manifest, self.verdict.consent
        needed = self.version.needs_consent or demanded is not None
        if needed and self.dry_run and self._is_harmless_dry():
            return "dry run"
        if not needed:
            # A rule may have let the call through because there is one: then it goes ahead with it, and one for once is spent.
            if not any("consent" in layer.asked for layer in self.decision_context.layers):
                return "not needed"
            self.result.consent = None if self.dry_run else self._consent_within(manifest.consent_scope)
            return encode("cns", self.result.consent.id) if self.result.consent else "not needed"
        self.result.needs_consent = True
        widest = manifest.consent_scope if self.version.needs_consent else MODES[0]
        if demanded is not None:
            widest = max(widest, demanded.mode, key=MODES.index)
        bounded = demanded is not None and demanded.mode != ConsentMode.STANDING
        found = self._consent_within(widest, validity_s=demanded.validity_s if demanded and bounded else None)
        if found is None:
            self._refuse_for_want_of_consent(widest)
        self.result.consent = found
        return encode("cns", found.id) if found else ""

    def _refuse_for_want_of_consent(self, widest: str) -> None:
        tool, demanded = self.decision_context.tool, self.verdict.consent
        unfit = (
            list_misfits(self.decision_context.consents, **self._binding()) if self.decision_context.consents else []
        )
        raise ConsentRequired(
            f"A person must agree before this agent uses {tool}.",
            remedy="Ask a person who may decide to agree, and call again once they have.",
            details={
                "tool": tool,
                "mode": widest,
                "rules": list(demanded.rules) if demanded else [],
                "others": unfit,
                "on_consent": ASKING,
                "request": {"method": "POST", "path": "/api/v1/consents", "body": {"tool": tool, "purpose": "…"}},
            },
        )

    def profile(self) -> str:
        verdict = self.verdict
        if not verdict.allowed:
            raise build_policy_denial(verdict, self.decision_context)
        self.result.reach = self._reach(self.result.grant)
        return self.result.policy_label

    def sandbox_guard(self) -> None:
        """A call that could only fail for want of a capability is refused before it starts."""
        assert self.result.reach is not None
        if (lacks := list_missing_capabilities(self.result.reach.explanation)) and not self.dry_run:
            first = lacks[0]
            raise CapabilityBlocked(
                f"{self.decision_context.tool} needs {first['capability']}, which the {first['dropped_by']} does not allow.",
                details={"missing": [entry["capability"] for entry in lacks], "dropped": lacks},
                remedy=f"Ask an operator to widen the {first['dropped_by']} by {first['capability']}.",
            )
        if missing := current_sandbox().missing(self.result.reach.profile):
            raise CapabilityBlocked(
                f"This hub's sandbox cannot provide: {', '.join(missing)}.",
                details={"missing": list(missing)},
                remedy=suggest_remedy(missing),
            )
        check_ready(self.version.id, self.version.manifest)


# What a step needs of those before it; where that is missing, it is skipped also when everything was asked for.
NEEDS = {name: {"tool"} for name in STEPS[1:]} | {"sandbox_guard": {"tool", "profile"}}


def run_preflight(
    call: CallRequest,
    decision_context: DecisionContext,
    fingerprints: dict[str, str],
    *,
    log: StepLog,
    everything: bool = False,
) -> Preflight:
    """Go through the steps until one refuses; ``log`` gets each of them, also those that were skipped.

    ``everything``: go on after a refusal with what can still be known, for explanations.
    """
    if call.chain_step is not None:
        decision_context = replace(
            decision_context, lines=build_step_lines(decision_context.lines, chain_id=call.chain_step.chain_id)
        )
    result = Preflight(decision_context)
    steps = _Steps(result, call, fingerprints)
    started_ms = log.now_ms()
    for name in STEPS:
        if result.problem is not None and (not everything or NEEDS.get(name, set()) & result.problems.keys()):
            log.add(PREFIX + name, "control", log.now_ms(), log.now_ms(), status=SKIPPED)
            continue
        begun, status, note = log.now_ms(), PASSED, ""
        try:
            note = getattr(steps, name)() or ""
        except Problem as problem:
            status, result.problems[name] = FAILED, problem
            if result.problem is None:
                result.problem, result.refused_at = problem, name
        log.add(PREFIX + name, "control", begun, log.now_ms(), status=status, note=note)
    if not everything:  # those that explain look further than a call needs
        record_preflight((log.now_ms() - started_ms) / 1000, allowed=result.problem is None)
    return result
