"""May this call be made, and within what?

The steps of TOOLS-14 in order: input schema, grant, quota, consent, policy and profile, sandbox guard. They only read. The
first that fails decides; its problem says what would allow the call. Nothing about authorization is cached.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from access import consents
from access.budgets.lines import Demand, Line, check_budgets, lines_for, snapshot
from access.capabilities import Capabilities, explain
from access.models import Grant
from access.policy import Policy, check_policy_allows, current_policy
from access.problems import NoGrant, QuotaExceeded
from invocations.problems import CapabilityBlocked
from invocations.sandbox.base import Limits, Profile
from invocations.sandbox.current import current_sandbox
from invocations.steps import SKIPPED, StepLog
from registry.checks import compile_schema
from registry.selectors import check_callable
from toolhub.kernel.canonical import encoded
from toolhub.kernel.problems import Problem, SchemaInvalid, TooLarge

if TYPE_CHECKING:
    from datetime import datetime

    import jsonschema_rs

    from access.models import Consent
    from registry.models import Tool, ToolVersion
    from toolhub.kernel.principal import Principal

STEPS = ("tool", "input_schema", "grant", "quota", "consent", "profile", "sandbox_guard")
PREFIX = "preflight."
MAX_FINDINGS = 20
LEAST_TMP = 4096  # a tmpfs of size 0 would be one without a limit


@dataclass(slots=True)
class Preflight:
    """What was decided. ``problem`` is None exactly when the call may be made; ``version`` is what it would run."""

    policy: Policy
    version: ToolVersion | None = None
    problem: Problem | None = None
    refused_at: str = ""
    grant: Grant | None = None
    consent: Consent | None = None
    profile: Profile | None = None
    explanation: list[dict[str, str]] = field(default_factory=list)
    demand: Demand = field(default_factory=Demand)
    lines: list[Line] = field(default_factory=list)
    obligations: list[dict[str, Any]] = field(default_factory=list)

    def checked_version(self) -> ToolVersion:
        """The version of a call that may be made."""
        assert self.version is not None
        return self.version

    @property
    def budget(self) -> list[dict[str, Any]]:
        """The budgets that the call counts against, as they were before it."""
        return snapshot(self.lines, self.demand)

    @property
    def profile_hash(self) -> str:
        return self.profile.digest() if self.profile else ""


_validators: dict[tuple[Any, str], jsonschema_rs.Validator] = {}
MAX_VALIDATORS = 1024


def validator_of(version: ToolVersion, which: str) -> jsonschema_rs.Validator:
    """Compiled once for each immutable version. ``which``: ``input_schema`` or ``output_schema``."""
    key = (version.pk, which)
    if key not in _validators:
        if len(_validators) >= MAX_VALIDATORS:
            _validators.clear()
        _validators[key] = compile_schema(version.manifest[which])
    return _validators[key]


def findings_of(validator: jsonschema_rs.Validator, value: Any) -> list[dict[str, str]]:
    found = []
    for error in validator.iter_errors(value):
        pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error.instance_path)
        found.append({"pointer": pointer, "message": error.message[:300]})
        if len(found) == MAX_FINDINGS:
            break
    return found


def check_input(version: ToolVersion, arguments: Any) -> None:
    limit = version.view.limit("max_bytes_in")
    size = len(encoded(arguments)[1])
    if size > limit:
        raise TooLarge(f"The arguments are {size:,} bytes; this tool takes {limit:,}.", details={"max_bytes": limit})
    findings = findings_of(validator_of(version, "input_schema"), arguments)
    if findings:
        first = findings[0]
        raise SchemaInvalid(
            f"The arguments do not match the tool's input schema: {first['message']} (at {first['pointer'] or '/'})",
            details={"findings": findings},
            remedy=f"Read the input schema at GET /api/v1/tools/{version.tool.name}.",
        )


def grants_for(*, agent_id: Any, tool_id: str, now: datetime) -> list[Grant]:
    """The agent's grants that cover this tool, the most specific first."""
    grants = [grant for grant in Grant.objects.in_force(now).filter(agent_id=agent_id) if grant.covers(tool_id)]
    return sorted(grants, key=lambda grant: (-len(grant.tools), grant.created_at))


def check_has_grant(*, agent_id: Any, agent_name: str, tool_id: str, now: datetime) -> list[Grant]:
    grants = grants_for(agent_id=agent_id, tool_id=tool_id, now=now)
    if not grants:
        raise NoGrant(
            f"{agent_name} has no grant for {tool_id}.",
            remedy=f"Ask an operator to give {agent_name} a grant for {tool_id}.",
            details={"smallest_grant": {"tools": tool_id}},
        )
    return grants


def demand_of(version: ToolVersion, policy: Policy, arguments: Any) -> Demand:
    """The most that the call may take: its arguments, and what manifest and policy let its run use."""
    manifest = version.view
    wall_ms = min(manifest.timeout_ms, policy.limits["timeout_ms"])
    return Demand(
        bytes_in=len(encoded(arguments)[1]),
        bytes_out=min(manifest.limit("max_bytes_out"), policy.limits["max_bytes_out"]),
        cpu_ms=cpu_seconds(wall_ms) * 1000,
    )


def cpu_seconds(wall_ms: int) -> int:
    return max(1, wall_ms // 1000 + 1)


def check_quota(
    grants: list[Grant], demand: Demand, *, by: Principal, tool_id: str, now: datetime
) -> tuple[Grant, list[Line]]:
    """The first grant whose budgets, with those of tenant, agent and tool, have room for the call."""
    refusals: list[QuotaExceeded] = []
    for grant in grants:
        lines = lines_for(tenant_id=by.tenant_id, agent_id=by.agent(), tool=tool_id, grant_id=grant.pk, now=now)
        try:
            check_budgets(lines, demand, now)
        except QuotaExceeded as refusal:
            refusals.append(refusal)
        else:
            return grant, lines
    raise min(refusals, key=lambda refusal: refusal.retry_after or float("inf"))  # the grant that serves again first


def effective_profile(
    version: ToolVersion, grant: Grant, policy: Policy, *, dry_run: bool
) -> tuple[Profile, list[dict[str, str]]]:
    """Grant ∩ Manifest ∩ Policy. A dry run is narrowed to what cannot change anything."""
    manifest = version.view
    asked = Capabilities.from_json(manifest.capabilities)
    granted = None if grant.capabilities is None else Capabilities.from_json(grant.capabilities)
    effective = asked & policy.capabilities if granted is None else asked & granted & policy.capabilities
    explanation = explain(asked, grant=granted, policy=policy.capabilities)
    if dry_run:
        harmless = Capabilities(fs=frozenset(item for item in effective.fs if item[1] == "read"), tmp=effective.tmp)
        explanation += explain(effective, dry_run=harmless)
        effective = effective & harmless
    limits = Limits(
        wall_ms=min(manifest.timeout_ms, policy.limits["timeout_ms"]),
        cpu_s=cpu_seconds(min(manifest.timeout_ms, policy.limits["timeout_ms"])),
        memory_bytes=min(manifest.limit("memory_bytes"), policy.limits["memory_bytes"]),
        tmp_bytes=max(LEAST_TMP, effective.tmp),
        result_bytes=min(manifest.limit("max_bytes_out"), policy.limits["max_bytes_out"]),
        result_depth=manifest.limit("depth"),
    )
    profile = Profile(
        limits=limits,
        fs=tuple(sorted(effective.fs)),
        net=tuple(sorted(effective.net)),
        proc=tuple(sorted(effective.proc)),
        browser=effective.browser,
    )
    return profile, explanation


def check_sandbox_guard(
    version: ToolVersion, profile: Profile, explanation: list[dict[str, str]], *, dry_run: bool
) -> None:
    """A call that could only fail for want of a capability is refused before it starts."""
    dropped = [
        entry
        for entry in explanation
        if entry["dropped_by"] in ("grant", "policy") and not entry["capability"].startswith("tmp")
    ]
    if dropped and not dry_run:
        first = dropped[0]
        raise CapabilityBlocked(
            f"{version.tool.name} needs {first['capability']}, which the {first['dropped_by']} does not allow.",
            details={"missing": [entry["capability"] for entry in dropped], "dropped": dropped},
            remedy=f"Ask an operator to widen the {first['dropped_by']} by {first['capability']}.",
        )
    missing = current_sandbox().missing(profile)
    if missing:
        raise CapabilityBlocked(
            f"This hub's sandbox cannot provide: {', '.join(missing)}.",
            details={"missing": list(missing)},
            remedy="Use a tool that does without, or a hub whose sandbox provides it.",
        )


def run_preflight(
    tool: Tool, arguments: Any, *, by: Principal, dry_run: bool, now: datetime, log: StepLog
) -> Preflight:
    """Go through all steps until one refuses; ``log`` gets each of them, also those that were skipped."""
    result = Preflight(policy=current_policy(), version=tool.current)
    try:
        _decide(result, tool, arguments, by=by, dry_run=dry_run, now=now, log=log)
    except Problem as problem:
        result.problem = problem
        reached = [step["name"].removeprefix(PREFIX) for step in log.steps if step["name"].startswith(PREFIX)]
        result.refused_at = reached[-1]
        for name in STEPS[len(reached) :]:
            log.add(PREFIX + name, "control", log.now_ms(), log.now_ms(), status=SKIPPED)
    return result


def _decide(
    result: Preflight, tool: Tool, arguments: Any, *, by: Principal, dry_run: bool, now: datetime, log: StepLog
) -> None:
    """The steps in their order; the first problem ends it."""
    with log.step(PREFIX + "tool") as told:
        version = check_callable(tool)
        version.tool = tool
        told["note"] = version.version
    manifest = version.view
    with log.step(PREFIX + "input_schema"):
        check_input(version, arguments)
    with log.step(PREFIX + "grant") as told:
        grants = check_has_grant(agent_id=by.agent(), agent_name=by.name, tool_id=tool.name, now=now)
        result.grant, told["note"] = grants[0], grants[0].tools
    with log.step(PREFIX + "quota"):
        result.demand = demand_of(version, result.policy, arguments)
        result.grant, result.lines = check_quota(grants, result.demand, by=by, tool_id=tool.name, now=now)
    with log.step(PREFIX + "consent") as told:
        if manifest.needs_consent and not dry_run:
            result.consent = consents.check_has_consent(
                agent_id=by.agent(), tool=tool.name, versions=f"^{manifest.major}"
            )
            told["note"] = result.consent.wire_id
        else:
            told["note"] = "dry run" if manifest.needs_consent else "not needed"
    with log.step(PREFIX + "profile"):
        check_policy_allows(result.policy, tool_id=tool.name)
        result.profile, result.explanation = effective_profile(version, result.grant, result.policy, dry_run=dry_run)
    with log.step(PREFIX + "sandbox_guard"):
        check_sandbox_guard(version, result.profile, result.explanation, dry_run=dry_run)
