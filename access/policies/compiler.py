"""Compiler: a policy document becomes something that decides in microseconds.

Each rule is compiled once into nested functions. For each tool the rules whose conditions on the tool alone fail are left
out, and the list that remains is kept, so that a call asks only what can still matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from access.policies import conditions
from access.policies.clauses import LEVELS, RuleEffect
from access.policies.language import FORMAT, validate_policy
from access.policies.verdict import obligation_key
from kernel.canonical import compute_digest
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from access.policies.conditions import Asked
    from access.policies.findings import PolicyFinding

MAX_TOOLS = 4096
ABOUT_THE_TOOL = ("tool", "group", "tool_major", "side_effect", "safety_class", "tags", "domains")
Candidate = tuple["CompiledRule", "Asked"]


class PolicyUnreadable(ValueError):
    """The document is no policy that this hub understands. ``findings`` say why."""

    def __init__(self, findings: list[PolicyFinding]) -> None:
        self.findings = findings
        super().__init__(f"{findings[0].message} (at {findings[0].pointer or '/'})")


@dataclass(slots=True, eq=False)
class CompiledRule:
    """``ref`` names it in verdicts. Two are equal when they are the same object, so rules may be keys of a cache."""

    id: str
    ref: str
    effect: RuleEffect
    condition: conditions.AllOf
    whole: Asked
    about_tool: Asked
    rest: Asked
    capabilities: Capabilities | None = None
    limits: dict[str, int] = field(default_factory=dict)
    level: str = LEVELS[0]
    untrusted: bool = False
    obligations: dict[bytes, dict[str, Any]] = field(default_factory=dict)
    amount: int = 0
    consent: dict[str, Any] = field(default_factory=dict)
    answered_by: str = ""
    tools: str = ""
    asked: tuple[str, ...] = ()  # the attributes without which it may be undecided

    def unknown(self, attributes: dict[str, Any]) -> list[str]:
        return [name for name in self.asked if attributes.get(name) is None]


@dataclass(slots=True)
class CompiledPolicy:
    """One layer. ``broken`` is empty, or says why nothing may be allowed by it."""

    label: str
    digest: str
    rules: tuple[CompiledRule, ...] = ()
    broken: str = ""
    asked: frozenset[str] = frozenset()  # the attributes that any rule asks about
    _whole: tuple[Candidate, ...] = ()
    _by_tool: dict[tuple[Any, ...], tuple[Candidate, ...]] = field(default_factory=dict)

    def candidates(self, attributes: dict[str, Any]) -> Sequence[Candidate]:
        """The rules that may match a call of this tool, each with what is left to ask."""
        try:
            key = _tool_key(attributes)
            found = self._by_tool.get(key)
            if found is None:
                found = tuple((rule, rule.rest) for rule in self.rules if rule.about_tool(attributes))
                if len(self._by_tool) >= MAX_TOOLS:
                    self._by_tool.clear()
                self._by_tool[key] = found
        except (LookupError, TypeError, AttributeError):  # not what a tool is described with: each rule is asked whole
            return self._whole
        return found


def _tool_key(attributes: dict[str, Any]) -> tuple[Any, ...]:
    """All that is said of the tool. ``LookupError`` or ``TypeError`` unless it is said in full."""
    tool, group, major, effect, safety, tags, domains = map(attributes.__getitem__, ABOUT_THE_TOOL)
    if None in (tool, group, major, effect, safety) or type(tags) is not list or type(domains) is not list:
        raise TypeError
    return tool, group, major, effect, safety, tuple(tags), tuple(domains)


def compile_policy(document: Any, label: str, digest: str) -> CompiledPolicy:
    """Raises :class:`PolicyUnreadable` unless the document is sound."""
    errors = [finding for finding in validate_policy(document, doubts=False) if finding.severity == "error"]
    if errors:
        raise PolicyUnreadable(errors)
    rules = tuple(_compiled(rule, label) for rule in document["rules"])
    return CompiledPolicy(
        label=label,
        digest=digest,
        rules=rules,
        asked=frozenset().union(*(conditions.collect_attributes(rule.condition) for rule in rules)),
        _whole=tuple((rule, rule.whole) for rule in rules),
    )


def _compiled(rule: dict[str, Any], label: str) -> CompiledRule:
    condition = conditions.build_condition(rule.get("when", {}))
    about_tool = [part for part in condition.parts if conditions.collect_attributes(part) <= set(ABOUT_THE_TOOL)]
    rest = [part for part in condition.parts if part not in about_tool]
    return CompiledRule(
        id=rule["id"],
        ref=f"{label}#{rule['id']}",
        effect=RuleEffect(rule["effect"]),
        condition=condition,
        whole=conditions.compile_condition(condition),
        about_tool=conditions.compile_condition(conditions.AllOf(tuple(about_tool))),
        rest=conditions.compile_condition(conditions.AllOf(tuple(rest))),
        capabilities=Capabilities.from_json(rule["capabilities"]) if "capabilities" in rule else None,
        limits=rule.get("limits", {}),
        level=rule.get("level", LEVELS[0]),
        untrusted=rule.get("untrusted", False),
        obligations={obligation_key(each): each for each in rule.get("obligations", [])},
        amount=rule.get("amount_micros", 0),
        consent=rule.get("consent", {}),
        answered_by=rule.get("answered_by", ""),
        tools=rule.get("tools", ""),
        asked=tuple(sorted({test.attribute for test in conditions.iter_tests(condition) if test.ask != "has"})),
    )


BUILTIN_DOCUMENT: dict[str, Any] = {
    "format": FORMAT,
    "note": "In force while the hub has no policy of its own: what was granted is permitted, within a narrow sandbox.",
    "rules": [
        {"id": "all", "effect": "permit", "when": {}, "note": "Whatever a grant gives."},
        {
            "id": "sandbox",
            "effect": "ceiling",
            "when": {},
            "capabilities": {
                "tmp": 32 * 1024 * 1024,
                "secrets": ["*"],
                "fs": [{"path": "/data", "actions": ["create", "delete", "list", "read", "write"]}],
            },
            "limits": {
                "timeout_ms": 30_000,
                "memory_bytes": 512 * 1024 * 1024,
                "max_bytes_in": 1_048_576,
                "max_bytes_out": 1_048_576,
            },
            "note": "Scratch space, the tool's own secrets and the tenant's files, and nothing outside the hub.",
        },
    ],
}
BUILTIN = compile_policy(BUILTIN_DOCUMENT, "builtin@2", compute_digest(BUILTIN_DOCUMENT))
