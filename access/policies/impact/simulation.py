"""Simulation: what would have become of the last calls under a draft.

Each call's Begin fact keeps what was decided on (``decision_input``) and how (``decision``). The draft decides the same
inputs together with the layer that stays as it is. Only policy is compared: what a grant or a budget refused is not in it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from access.policies.attributes import NO_REQUEST
from access.policies.conditions import compile_condition, iter_tests
from access.policies.verdict import evaluate_policies
from evidence.leaves.call_begins import DecidedCall, PolicyDecision
from kernel.ids import encode

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


class SimulatedOutcome(StrEnum):
    DENIED = "denied"
    HELD = "held"
    ALLOWED = "allowed"


class OutcomeChange(StrEnum):
    SAME = "same"
    NOW_DENIED = "now_denied"
    NOW_HELD = "now_held"
    NOW_ALLOWED = "now_allowed"


_CHANGED = {
    SimulatedOutcome.DENIED: OutcomeChange.NOW_DENIED,
    SimulatedOutcome.HELD: OutcomeChange.NOW_HELD,
    SimulatedOutcome.ALLOWED: OutcomeChange.NOW_ALLOWED,
}


def classify_outcome(
    *, allowed: bool, demanded: bool, attributes: dict[str, Any], by_manifest: bool = False
) -> SimulatedOutcome:
    """``demanded``: the policy asks for a consent; ``by_manifest``: the tool does anyway. A dry run needs none."""
    if not allowed:
        return SimulatedOutcome.DENIED
    needed = demanded or by_manifest or attributes.get("safety_class") == "High"
    needed = needed or attributes.get("side_effect") in CONSENT_BY_NATURE
    if needed and not attributes.get("consent") and not attributes.get("dry_run"):
        return SimulatedOutcome.HELD
    return SimulatedOutcome.ALLOWED


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
    seen: Counter[tuple[str, str, str, OutcomeChange]] = field(default_factory=Counter)  # agent, its name, tool, change
    groups: dict[tuple[OutcomeChange, tuple[str, ...], tuple[str, ...]], _Group] = field(default_factory=dict)
    first_at: str = ""
    last_at: str = ""

    def add(self, at: str, attributes: dict[str, Any], change: OutcomeChange) -> None:
        self.first_at = at
        if not self.calls:
            self.last_at = self.first_at
        self.calls += 1
        self.seen[
            attributes.get("agent", ""), attributes.get("agent_name", ""), attributes.get("tool", ""), change
        ] += 1

    def add_change(
        self,
        invocation: UUID,
        tenant: UUID,
        at: str,
        attributes: dict[str, Any],
        decision: PolicyDecision,
        change: OutcomeChange,
        new: tuple[str, ...],
    ) -> None:
        group = self.groups.setdefault((change, without_versions(decision.rules or ()), new), _Group())
        group.count += 1
        if len(group.examples) < EXAMPLES_A_GROUP:
            agent = str(attributes.get("agent_name") or attributes.get("agent", ""))
            wire = {"invocation": encode("inv", invocation), "tenant": encode("ten", tenant)}
            told = {"agent": agent, "tool": str(attributes.get("tool", "")), "at": str(at)}
            group.examples.append(wire | told)

    @property
    def counts(self) -> Counter[OutcomeChange]:
        found: Counter[OutcomeChange] = Counter()
        for (_, _, _, change), count in self.seen.items():
            found[change] += count
        return found

    def to_json(self) -> dict[str, Any]:
        """Bounded: the largest groups, and the agents and tools with most changes."""
        agents: defaultdict[tuple[str, str], Counter[OutcomeChange]] = defaultdict(Counter)
        tools: defaultdict[str, Counter[OutcomeChange]] = defaultdict(Counter)
        for (agent, name, tool, change), count in self.seen.items():
            agents[str(agent), str(name)][change] += count
            tools[str(tool)][change] += count
        counts, ordered = self.counts, sorted(self.groups.items(), key=lambda item: (-item[1].count, item[0]))
        share = max(1, MAX_EXAMPLES // max(1, min(len(ordered), MAX_GROUPS)))
        return {
            "calls": self.calls,
            "unusable": self.unusable,
            "first_at": self.first_at,
            "last_at": self.last_at,
            "counts": {change: counts[change] for change in OutcomeChange},
            "groups": [
                {
                    "change": change,
                    "old": list(old),
                    "new": list(new),
                    "count": group.count,
                    "examples": group.examples[:share],
                }
                for (change, old, new), group in ordered[:MAX_GROUPS]
            ],
            "more_groups": max(0, len(ordered) - MAX_GROUPS),
            "agents": [{"agent": id, "name": name, **counts} for (id, name), counts in _most_changed(agents)],
            "tools": [{"tool": tool, **counts} for tool, counts in _most_changed(tools)],
        }


def _most_changed(found: dict[Any, Counter[OutcomeChange]]) -> list[tuple[Any, dict[str, int]]]:
    ordered = sorted(
        found.items(), key=lambda item: (item[1][OutcomeChange.SAME] - item[1].total(), -item[1].total(), item[0])
    )
    return [(name, {change: counts[change] for change in OutcomeChange}) for name, counts in ordered[:MAX_NAMED]]


class _Alike:
    """Which calls do the rules of these layers not tell apart? They are decided once.

    Every value of an attribute falls into a class by the answers of all tests on it; a call is the classes of its values.
    """

    def __init__(self, layers: Sequence[CompiledPolicy]) -> None:
        self.layers = layers
        tests = {test for layer in layers for rule in layer.rules for test in iter_tests(rule.condition)}
        names = sorted({test.attribute for test in tests})
        self.attributes = [
            (name, [compile_condition(test) for test in sorted(tests, key=str) if test.attribute == name])
            for name in names
        ]
        self.classes: list[dict[Any, Any]] = [{} for _ in self.attributes]
        self.known: dict[Any, tuple[bool, bool, tuple[str, ...]]] = {}

    def decided(self, attributes: dict[str, Any]) -> tuple[bool, bool, tuple[str, ...]]:
        """Whether the call is allowed, whether a consent is demanded, and the rules behind it."""
        key = []
        for (name, asked), classes in zip(self.attributes, self.classes, strict=True):
            value = attributes.get(name)
            if type(value) is list:
                value = tuple(value)
            found = classes.get(value)
            if found is None:
                if len(classes) >= MAX_KNOWN:
                    classes.clear()
                found = classes[value] = tuple(ask({name: value}) for ask in asked)
            key.append(found)
        known = tuple(key)
        answer = self.known.get(known)
        if answer is None:
            if len(self.known) >= MAX_KNOWN:
                self.known.clear()
            verdict = evaluate_policies(self.layers, attributes)
            rules = without_versions([*verdict.rules, *denied_by_default(verdict)])
            answer = self.known[known] = verdict.allowed, verdict.consent is not None, rules
        return answer


def simulate_calls(rows: Iterable[Row], layers_of: Callable[[UUID], Sequence[CompiledPolicy]]) -> Simulation:
    """``rows`` newest first. A recorded input that no rule can be asked about counts as unusable, too."""
    found = Simulation()
    alike: dict[int, _Alike] = {}
    of_tenant: dict[UUID, _Alike] = {}
    for invocation, tenant, raw in rows:
        leaf = json.loads(bytes(raw))
        decided = DecidedCall.from_data(leaf.get("data"))
        attributes, decision = decided.decision_input, decided.decision
        if not isinstance(attributes, dict) or decision is None:
            found.unusable += 1
            continue
        attributes = NO_REQUEST | attributes
        if tenant not in of_tenant:
            layers = layers_of(tenant)
            of_tenant[tenant] = alike.setdefault(id(layers), _Alike(layers))
        try:
            allowed, demanded, rules = of_tenant[tenant].decided(attributes)
        except (TypeError, AttributeError):
            found.unusable += 1
            continue
        by_manifest = bool(decision.by_manifest)
        now = classify_outcome(allowed=allowed, demanded=demanded, attributes=attributes, by_manifest=by_manifest)
        was = classify_outcome(
            allowed=bool(decision.allowed),
            demanded=bool(decision.consent),
            attributes=attributes,
            by_manifest=by_manifest,
        )
        change = OutcomeChange.SAME if was is now else _CHANGED[now]
        found.add(leaf["at"], attributes, change)
        if change is not OutcomeChange.SAME:
            found.add_change(invocation, tenant, leaf["at"], attributes, decision, change, rules)
    return found
