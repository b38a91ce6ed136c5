"""Explanations: why an agent can, or cannot, call a tool, and what would change that.

The answer comes from the very steps that decide about calls, asked to go on after the first refusal. It is the joined view of
a tool for one agent as well (TOOLS-10): manifest, the tenant's installation, policy, budgets and what was granted.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from invocations.calls import CallRequest, compute_fingerprints
from invocations.decide.preflight import PREFIX, Preflight, run_preflight
from invocations.step_log import StepLog
from kernel.canonical import compute_digest
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import encode
from kernel.principal import ActorKind, Principal
from registry.decision_context import load_decision_context
from registry.tools.callability import check_known

if TYPE_CHECKING:
    from access.models import Agent
    from kernel.problems import Problem

GRANT_REQUESTS = "/api/v1/grants/requests"


def build_agent_principal(agent: Agent) -> Principal:
    """The agent as the one whose calls are asked about; it holds nothing here, and nothing is done in its name."""
    return Principal(
        kind=ActorKind.AGENT, id=agent.wire_id, name=agent.name, tenant_id=agent.tenant_id, agent_id=agent.pk
    )


def explain_call(
    *, tool: str, agent: Agent | None = None, arguments: dict[str, Any] | None = None, by: Principal
) -> tuple[Preflight, StepLog]:
    """Every step that can be known, for the agent itself or, for a person, for any agent of the tenant. Nothing is written."""
    caller = by if agent is None else build_agent_principal(agent)
    log = StepLog(datetime.now(UTC))
    decision_context = load_decision_context(
        tenant_id=by.tenant_id,
        agent_id=caller.agent(),
        key_id=caller.key_id,
        connection_id=caller.connection.id if caller.connection else None,
        tool=tool,
    )
    check_known(decision_context)
    envelope = RequestEnvelope(request_id="explain", actor={"type": "agent", "id": caller.id})
    call = CallRequest(tool=tool, arguments=arguments, envelope=envelope)
    return run_preflight(call, decision_context, compute_fingerprints(call, caller), log=log, everything=True), log


def describe_steps(preflight: Preflight, log: StepLog) -> list[dict[str, Any]]:
    """Each step with its problem, for answers and for the page."""
    found = []
    for step in log.steps:
        name = step["name"].removeprefix(PREFIX)
        problem = preflight.problems.get(name)
        found.append(
            {
                "name": name,
                "status": step["status"],
                "ms": round(step["end_ms"] - step["begin_ms"], 3),
                "note": step["note"],
                "problem": problem.to_error() if problem else None,
            }
        )
    return found


def suggest_changes(preflight: Preflight) -> list[dict[str, Any]]:
    """The smallest changes that would let the call through, each with who can make it and how it is asked for."""
    found: list[dict[str, Any]] = []
    for step, problem in preflight.problems.items():
        found += _changes(step, problem)
    return found


def _changes(step: str, problem: Problem) -> list[dict[str, Any]]:
    details = problem.details
    if "smallest_grant" in details:
        body = details["smallest_grant"]
        return [
            _change(step, "grant", problem, body=body, ask={"method": "POST", "path": GRANT_REQUESTS, "body": body})
        ]
    if "smallest_change" in details:
        return [_change(step, "policy", problem, body=each) for each in details["smallest_change"]]
    if "request" in details:
        return [_change(step, "consent", problem, ask=details["request"])]
    if "dropped" in details:
        return [
            _change(step, side, problem, body={"allow": [each["capability"] for each in lost]})
            for side in sorted({entry["dropped_by"] for entry in details["dropped"]})
            if (lost := [entry for entry in details["dropped"] if entry["dropped_by"] == side])
        ]
    return [_change(step, step, problem)]


def _change(
    step: str, kind: str, problem: Problem, *, body: dict[str, Any] | None = None, ask: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"step": step, "kind": kind, "remedy": problem.remedy, "change": body, "ask": ask}


def list_conditions(preflight: Preflight) -> list[dict[str, Any]]:
    """What the chosen grant asks of the arguments."""
    grant = preflight.grant
    if grant is None:
        return []
    stored = next((each for each in preflight.decision_context.grants if each.id == grant.id), grant)
    return list(stored.conditions)


def explanation_json(preflight: Preflight, log: StepLog) -> dict[str, Any]:
    verdict = preflight.verdict
    return {
        "agent": encode("agt", preflight.decision_context.agent_id),
        "tool": preflight.decision_context.tool,
        "allow": preflight.problem is None,
        "refused_at": preflight.refused_at or None,
        "steps": describe_steps(preflight, log),
        "because": verdict.explain() if verdict else [],
        "rules": verdict.rules if verdict else [],
        "conditions": list_conditions(preflight),
        "dropped": preflight.explanation,
        "changes": suggest_changes(preflight),
    }


def build_available_spec(preflight: Preflight) -> dict[str, Any]:
    """The joined view of one tool for one agent. ``etag`` is over all of it: it changes exactly when the view does."""
    installed, version, reach = preflight.decision_context.installed, preflight.version, preflight.reach
    data: dict[str, Any] = {
        "id": preflight.decision_context.tool,
        "urn": f"soul:tool:{preflight.decision_context.tool}",
        "agent": encode("agt", preflight.decision_context.agent_id),
        "allow": preflight.problem is None,
        "refused_at": preflight.refused_at or None,
        "reason": preflight.problem.reason if preflight.problem else None,
        "policy": {"version": preflight.policy_label, "hash": preflight.policy_hash},
        "grant": encode("grt", preflight.grant.id) if preflight.grant else None,
        "conditions": list_conditions(preflight),
        "consent": {
            "needed": preflight.needs_consent,
            "held": encode("cns", preflight.consent.id) if preflight.consent else None,
        },
        "capabilities": reach.capabilities.to_json() if reach else None,
        "profile_hash": preflight.profile_hash or None,
        "budgets": preflight.budget,
        "price_micros": preflight.verdict.price_micros if preflight.verdict else None,
        "obligations": preflight.obligations,
    }
    if installed is not None:
        data["installation"] = {
            "id": encode("ins", installed.id),
            "state": installed.state,
            "config_digest": installed.config_digest or None,
            "hosts": installed.hosts,
            "paths": installed.paths,
        }
        data |= {"state": installed.tool_state, "version": installed.version or None}
        data["sunset_on"] = installed.sunset_on.isoformat() if installed.sunset_on else None
        data["successor"] = installed.successor or None
    if version is not None:
        manifest = version.manifest
        data |= {
            "display_name": manifest.display_name,
            "description": manifest.description,
            "tags": manifest.tags,
            "input_schema": manifest.input_schema,
            "output_schema": manifest.output_schema,
            "side_effect": manifest.side_effect,
            "safety_class": manifest.safety_class,
            "idempotency": manifest.idempotency,
            "ttl_seconds": manifest.ttl_seconds,
        }
    return data | {"etag": compute_digest(data)}
