"""What would have become of the last calls under this draft?

Each call's Begin fact keeps what was decided on (``decision_input``) and how (``decision``). The draft decides the same
inputs together with the layer that stays as it is. Only policy is compared: what a grant or a budget refused is not in it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from access.policies.verdict import decide
from toolhub.kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from access.policies.compiler import CompiledPolicy
    from access.policies.verdict import Verdict

DEFAULT_CALLS = 1_000
MAX_CALLS = 100_000
MAX_EXAMPLES = 200
EXAMPLES_A_GROUP = 20
MAX_GROUPS = 50
MAX_NAMED = 50
MAX_KNOWN = 50_000
CONSENT_BY_NATURE = ("Write", "Process")  # side effects that need a consent whatever the policy says (TOOLS-19)

Row = tuple["UUID", "UUID", Any]  # invocation, tenant, leaf
Layers = "Callable[[UUID], Sequence[CompiledPolicy]]"


class Outcome(StrEnum):
    DENIED = "denied"
    HELD = "held"
    ALLOWED = "allowed"


class Change(StrEnum):
    SAME = "same"
    NOW_DENIED = "now_denied"
    NOW_HELD = "now_held"
    NOW_ALLOWED = "now_allowed"


_CHANGED = {
    Outcome.DENIED: Change.NOW_DENIED,
    Outcome.HELD: Change.NOW_HELD,
    Outcome.ALLOWED: Change.NOW_ALLOWED,
}


def outcome_of(*, allowed: bool, demanded: bool, attributes: dict[str, Any], by_manifest: bool = False) -> Outcome:
    """``demanded``: the policy asks for a consent; ``by_manifest``: the tool does anyway. A dry run needs none."""
    if not allowed:
        return Outcome.DENIED
    needed = demanded or by_manifest or attributes.get("safety_class") == "High"
    needed = needed or attributes.get("side_effect") in CONSENT_BY_NATURE
    if needed and not attributes.get("consent") and not attributes.get("dry_run"):
        return Outcome.HELD
    return Outcome.ALLOWED


def without_versions(refs: Iterable[str]) -> tuple[str, ...]:
    """``tenant@7#x`` as ``tenant#x``, so that calls of different days fall into one group."""
    return tuple(sorted({f"{ref.partition('@')[0]}#{ref.partition('#')[2]}" if "@" in ref else ref for ref in refs}))


def denied_by_default(verdict: Verdict) -> tuple[str, ...]:
    """Layers that permit nothing have no rule to name."""
    return tuple(f"{layer}#" for layer, rule in verdict.denied_by if not rule)


@dataclass(slots=True)
class _Group:
    count: int = 0
    examples: list[dict[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Simulation:
    """``unusable``: calls without a recorded decision input, which say nothing."""

    calls: int = 0
    unusable: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    groups: dict[tuple[str, tuple[str, ...], tuple[str, ...]], _Group] = field(default_factory=dict)
    agents: defaultdict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    tools: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    first_at: str = ""
    last_at: str = ""

    def add(self, invocation: UUID, tenant: UUID, leaf: dict[str, Any], change: Change, new: tuple[str, ...]) -> None:
        data = leaf["data"]
        attributes = data["decision_input"]
        at = leaf["at"]
        self.calls += 1
        self.counts[change] += 1
        self.last_at = self.last_at or at
        self.first_at = at
        agent = (str(attributes.get("agent", "")), str(attributes.get("agent_name", "")))
        tool = str(attributes.get("tool", ""))
        self.agents[agent][change] += 1
        self.tools[tool][change] += 1
        if change is Change.SAME:
            return
        group = self.groups.setdefault((change, without_versions(data["decision"].get("rules", ())), new), _Group())
        group.count += 1
        if len(group.examples) < EXAMPLES_A_GROUP:
            wire = {"invocation": encode("inv", invocation), "tenant": encode("ten", tenant)}
            group.examples.append(wire | {"agent": agent[1] or agent[0], "tool": tool, "at": at})

    def to_json(self) -> dict[str, Any]:
        """Bounded: the largest groups, and the agents and tools with most changes."""
        left, groups = MAX_EXAMPLES, []
        ordered = sorted(self.groups.items(), key=lambda item: (-item[1].count, item[0]))
        for (change, old, new), group in ordered[:MAX_GROUPS]:
            share = group.examples[: max(1, min(left, MAX_EXAMPLES // max(1, min(len(ordered), MAX_GROUPS))))]
            left -= len(share)
            groups.append(
                {"change": change, "old": list(old), "new": list(new), "count": group.count, "examples": share}
            )
        return {
            "calls": self.calls,
            "unusable": self.unusable,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "counts": {change: self.counts[change] for change in Change},
            "groups": groups,
            "more_groups": max(0, len(ordered) - MAX_GROUPS),
            "agents": [{"agent": id, "name": name, **counts} for (id, name), counts in _most_changed(self.agents)],
            "tools": [{"tool": tool, **counts} for tool, counts in _most_changed(self.tools)],
        }


def _most_changed(found: dict[Any, Counter[str]]) -> list[tuple[Any, dict[str, int]]]:
    ordered = sorted(
        found.items(), key=lambda item: (item[1][Change.SAME] - item[1].total(), -item[1].total(), item[0])
    )
    return [(name, {change: counts[change] for change in Change}) for name, counts in ordered[:MAX_NAMED]]


def simulate(rows: Iterable[Row], layers_of: Callable[[UUID], Sequence[CompiledPolicy]]) -> Simulation:
    """``rows`` newest first. Calls that are alike in what the rules ask about are decided once."""
    found = Simulation()
    known: dict[Any, tuple[Outcome, tuple[str, ...]]] = {}
    asked: dict[UUID, tuple[Sequence[CompiledPolicy], tuple[str, ...]]] = {}
    for invocation, tenant, raw in rows:
        leaf = json.loads(bytes(raw))
        data = leaf.get("data", {})
        attributes, decision = data.get("decision_input"), data.get("decision")
        if not isinstance(attributes, dict) or not isinstance(decision, dict):
            found.unusable += 1
            continue
        if tenant not in asked:
            layers = layers_of(tenant)
            names = {"safety_class", "side_effect", "consent", "dry_run"}.union(*(layer.asked for layer in layers))
            asked[tenant] = layers, tuple(sorted(names))
        layers, names_asked = asked[tenant]
        by_manifest = bool(decision.get("by_manifest"))
        key = (id(layers), by_manifest, *[_hashable(attributes.get(name)) for name in names_asked])
        if key not in known:
            if len(known) >= MAX_KNOWN:
                known.clear()
            verdict = decide(layers, attributes)
            now = outcome_of(
                allowed=verdict.allowed,
                demanded=verdict.consent is not None,
                attributes=attributes,
                by_manifest=by_manifest,
            )
            known[key] = now, without_versions([*verdict.rules, *denied_by_default(verdict)])
        now, rules = known[key]
        was = outcome_of(
            allowed=bool(decision.get("allowed")),
            demanded=bool(decision.get("consent")),
            attributes=attributes,
            by_manifest=by_manifest,
        )
        found.add(invocation, tenant, leaf, Change.SAME if was is now else _CHANGED[now], rules)
    return found


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
