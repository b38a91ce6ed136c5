"""Verdict: whether a call may be made under these layers of policy, and within what.

``evaluate_policies`` is pure: compiled policies and a dict of attributes in, a :class:`Verdict` out. Cedar's semantics within a layer
(denied unless a rule permits, any forbid wins, order-free), all layers must permit, and what restricts adds up. A rule that
asks about an attribute which the call lacks fails closed: it restricts, and it does not permit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from access.policies.clauses import DEFAULT_VALIDITY_S, LEVELS, MODES, SHOWN_TOOLS, RuleEffect
from kernel.canonical import canonicalize, compute_digest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from access.policies.compiler import CompiledPolicy, CompiledRule
    from unitools.capabilities import Capabilities

NO_RULE = ""


@dataclass(frozen=True, slots=True)
class ConsentDemand:
    """The strictest of what the rules ask for: ``mode`` once before period before standing, the shortest validity."""

    mode: str
    validity_s: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Degradation:
    """What less a call of a model gets than it asked for. ``answered_by``: which model alone answers it; empty: the one that is asked.
    ``tools``: `read_only` or `none`; empty: all that it asked for.
    """

    answered_by: str
    tools: str
    rules: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"answered_by": self.answered_by or None, "tools": self.tools or None, "rules": list(self.rules)}


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What rules other than permit, forbid and price add up to. ``capabilities`` None, and a limit that is not named: no bound."""

    capabilities: Capabilities | None = None
    limits: dict[str, int] = field(default_factory=dict)
    limiters: dict[str, str] = field(default_factory=dict)  # by limit, the rule with the least
    isolation: str = LEVELS[0]
    untrusted: bool = False
    obligations: list[dict[str, Any]] = field(default_factory=list)
    consent: ConsentDemand | None = None
    degradation: Degradation | None = None


UNRESTRICTED = Restrictions()


@dataclass(slots=True)
class Verdict:
    """``denied_by`` holds (layer, rule); the rule is "" where nothing in the layer permits the call. Rules that contributed
    are named ``tenant@7#no-writes`` in ``rules``; ``unknown`` says which rule asked for which absent attribute.
    ``restrictions`` are shared between verdicts.
    """

    layers: tuple[str, ...]
    denied_by: list[tuple[str, str]] = field(default_factory=list)
    permits: list[str] = field(default_factory=list)
    forbids: list[str] = field(default_factory=list)
    unknown: list[tuple[str, str]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    restrictions: Restrictions = UNRESTRICTED
    price_micros: int = 0
    rules: list[str] = field(default_factory=list)

    @property
    def allowed(self) -> bool:
        return not self.denied_by

    @property
    def consent(self) -> ConsentDemand | None:
        return self.restrictions.consent

    @property
    def capabilities(self) -> Capabilities | None:
        return self.restrictions.capabilities

    @property
    def limits(self) -> dict[str, int]:
        return self.restrictions.limits

    @property
    def isolation(self) -> str:
        return self.restrictions.isolation

    @property
    def untrusted(self) -> bool:
        """Whether any rule says that nobody here vouches for the code: the runtime set aside for it, and every wall."""
        return self.restrictions.untrusted

    @property
    def obligations(self) -> list[dict[str, Any]]:
        return self.restrictions.obligations

    @property
    def degradation(self) -> Degradation | None:
        return self.restrictions.degradation

    def explain(self) -> list[str]:
        """What decided, in sentences that name the rules."""
        said = list(self.broken)
        for layer, rule in self.denied_by:
            if rule:
                said.append(f"The rule {rule} of {layer} forbids this call.")
            elif not any(each.startswith(layer) for each in self.broken):
                said.append(f"No rule of {layer} permits this call.")
        if self.allowed and self.permits:
            said.append(f"It is permitted by {_names(self.permits)}.")
        said += [
            f"The rule {rule} could not be decided: the call has no {attribute}." for rule, attribute in self.unknown
        ]
        if self.consent is not None:
            kind = {"once": "for this one call", "period": "for a time", "standing": "until it is revoked"}
            said.append(f"A person must consent {kind[self.consent.mode]}, says {_names(self.consent.rules)}.")
        if (less := self.degradation) is not None:
            model = f" is answered by {less.answered_by}" if less.answered_by else ""
            tools = {"": "", "none": " shows no tools", "read_only": " shows only tools that read"}[less.tools]
            said.append(f"A model's call{' and'.join(filter(None, (model, tools)))}, says {_names(less.rules)}.")
        return said


def _names(rules: Sequence[str]) -> str:
    return ", ".join(rules)


def evaluate_policies(layers: Sequence[CompiledPolicy], attributes: dict[str, Any]) -> Verdict:
    """``layers``: the hub's policy (or ``BUILTIN``), then the tenant's where one is in force."""
    verdict = Verdict(tuple(layer.label for layer in layers))
    matched: list[CompiledRule] = []
    for layer in layers:
        if layer.broken:
            verdict.broken.append(f"{layer.label} cannot be evaluated: {layer.broken}")
            verdict.denied_by.append((layer.label, NO_RULE))
            continue
        permitted = forbidden = False
        price = 0
        for rule, asked in layer.candidates(attributes):
            try:
                answer = asked(attributes)
            except (TypeError, AttributeError):  # an attribute of another type than the table says decides nothing
                answer = None
            if answer is False:
                continue
            effect = rule.effect
            if answer is None:
                verdict.unknown += [(rule.ref, name) for name in rule.unknown(attributes)]
                if effect is RuleEffect.PERMIT:
                    continue
            if effect is RuleEffect.PERMIT:
                permitted = True
                verdict.permits.append(rule.ref)
            elif effect is RuleEffect.FORBID:
                forbidden = True
                verdict.forbids.append(rule.ref)
                verdict.denied_by.append((layer.label, rule.id))
            elif effect is RuleEffect.PRICE:
                price = max(price, rule.amount)
                verdict.rules.append(rule.ref)
            else:
                matched.append(rule)
        if not permitted and not forbidden:
            verdict.denied_by.append((layer.label, NO_RULE))
        verdict.price_micros += price
    if matched:
        verdict.restrictions = combine_restrictions(tuple(matched))
        verdict.rules += [rule.ref for rule in matched]
    verdict.rules += verdict.permits if verdict.allowed else verdict.forbids
    return verdict


@lru_cache(maxsize=4096)
def combine_restrictions(rules: tuple[CompiledRule, ...]) -> Restrictions:
    """Most calls match the same rules as the one before, which never change: worked out once a process."""
    reach: Capabilities | None = None
    limits: dict[str, int] = {}
    limiters: dict[str, str] = {}
    isolation, untrusted = LEVELS[0], False
    obligations: dict[bytes, dict[str, Any]] = {}
    demands: list[CompiledRule] = []
    lessening: list[CompiledRule] = []
    for rule in rules:
        match rule.effect:
            case RuleEffect.CEILING:
                if rule.capabilities is not None:
                    reach = rule.capabilities if reach is None else reach & rule.capabilities
                for name, amount in rule.limits.items():
                    if amount < limits.get(name, amount + 1):
                        limits[name], limiters[name] = amount, rule.ref
            case RuleEffect.ISOLATION:
                isolation = max(isolation, rule.level, key=LEVELS.index)
                untrusted = untrusted or rule.untrusted
            case RuleEffect.OBLIGE:
                obligations |= rule.obligations
            case RuleEffect.DEGRADE:
                lessening.append(rule)
            case _:
                demands.append(rule)
    return Restrictions(
        capabilities=reach,
        limits=limits,
        limiters=limiters,
        isolation=isolation,
        untrusted=untrusted,
        obligations=[obligations[key] for key in sorted(obligations)],
        consent=strictest_demand(demands) if demands else None,
        degradation=combine_degradations(lessening) if lessening else None,
    )


def strictest_demand(demands: Sequence[CompiledRule]) -> ConsentDemand:
    return ConsentDemand(
        mode=max((rule.consent["mode"] for rule in demands), key=MODES.index),
        validity_s=min(rule.consent.get("validity_s", DEFAULT_VALIDITY_S) for rule in demands),
        rules=tuple(rule.ref for rule in demands),
    )


def combine_degradations(rules: Sequence[CompiledRule]) -> Degradation:
    """The fewest tools; of several models the one whose rule comes first by its name, in whatever order they stand."""
    ordered = sorted(rules, key=lambda rule: rule.ref)
    return Degradation(
        answered_by=next((rule.answered_by for rule in ordered if rule.answered_by), ""),
        tools=min((rule.tools for rule in ordered if rule.tools), key=SHOWN_TOOLS.index, default=""),
        rules=tuple(rule.ref for rule in ordered),
    )


def policy_hash(layers: Sequence[CompiledPolicy]) -> str:
    return compute_digest([layer.digest for layer in layers])


def policy_label(layers: Sequence[CompiledPolicy]) -> str:
    """``hub@3 tenant@7``"""
    return " ".join(layer.label for layer in layers)


def obligation_key(obligation: dict[str, Any]) -> bytes:
    return canonicalize(obligation)
