"""Policy denial: what a refusal by policy says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from access.policies.verdict import NO_RULE, Verdict, policy_label
from access.problems import PolicyDenied
from kernel.ids import encode

if TYPE_CHECKING:
    from registry.decision_context import DecisionContext


def build_policy_denial(verdict: Verdict, decision_context: DecisionContext) -> PolicyDenied:
    """Which rules said no, or that none said yes, and the smallest change of policy that would let the call through."""
    changes: list[dict[str, Any]] = []
    who = {"tool": {"equals": decision_context.tool}, "agent": {"equals": encode("agt", decision_context.agent_id)}}
    for layer, rule in verdict.denied_by:
        if rule != NO_RULE:
            changes.append({"layer": layer, "rule": rule, "change": "except this tool and agent", "when": who})
        elif not any(each.startswith(layer) for each in verdict.broken):
            permit = {"id": "allow-" + decision_context.tool.replace(".", "-"), "effect": "permit", "when": who}
            changes.append({"layer": layer, "add": permit})
    sentences = verdict.explain()
    return PolicyDenied(
        sentences[0],
        remedy="Ask somebody who drafts policies for the change in `details.smallest_change`.",
        details={
            "policy": policy_label(decision_context.layers),
            "rules": verdict.forbids,
            "unknown": [{"rule": rule, "attribute": attribute} for rule, attribute in verdict.unknown],
            "explanation": sentences,
            "smallest_change": changes,
        },
    )
