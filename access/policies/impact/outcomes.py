"""Outcomes: what the matched rules add up to in one respect, and whether that is wider or narrower than before.

Respects: whether the call is allowed (None), and what each effect adds to an allowed call.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from access.policies.clauses import DEFAULT_VALIDITY_S, LEVELS, MODES, SHOWN_TOOLS, RuleEffect
from kernel.canonical import canonicalize
from kernel.components import quantities
from kernel.components.capability_words import capability_texts
from kernel.components.limits import limit_text
from kernel.components.numbers import format_number
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from access.policies.impact.call_classes import RuleUnit

WIDER, NARROWER, DIFFERENT = "wider", "narrower", "different"
Value = Any


def combine_units(aspect: RuleEffect | None, units: Iterable[RuleUnit]) -> Value:
    """What the units add up to; equal values mean the same."""
    if aspect is None:
        effects = {unit.effect for unit in units}
        return RuleEffect.PERMIT in effects and RuleEffect.FORBID not in effects
    return _VALUES[aspect]([json.loads(unit.says) for unit in units if unit.effect is aspect])


def _consent(rules: list[dict[str, Any]]) -> Value:
    demands = [rule["consent"] for rule in rules]
    if not demands:
        return None
    mode = max(MODES.index(each["mode"]) for each in demands)
    return mode, -min(each.get("validity_s", DEFAULT_VALIDITY_S) for each in demands)


def _ceiling(rules: list[dict[str, Any]]) -> Value:
    bound: Capabilities | None = None
    limits: dict[str, int] = {}
    for rule in rules:
        if "capabilities" in rule:
            own = Capabilities.from_json(rule["capabilities"])
            bound = own if bound is None else bound & own
        for name, amount in rule.get("limits", {}).items():
            limits[name] = min(amount, limits.get(name, amount))
    return bound, tuple(sorted(limits.items()))


def _isolation(rules: list[dict[str, Any]]) -> Value:
    level = max((LEVELS.index(rule.get("level", LEVELS[0])) for rule in rules), default=0)
    return level, any(rule.get("untrusted", False) for rule in rules)


def _obligations(rules: list[dict[str, Any]]) -> Value:
    return frozenset(canonicalize(each) for rule in rules for each in rule["obligations"])


def _price(rules: list[dict[str, Any]]) -> Value:
    return max((rule["amount_micros"] for rule in rules), default=0)


def _degradation(rules: list[dict[str, Any]]) -> Value:
    """The models by which calls may be answered; of several rules nobody can say here whose name comes first."""
    models = frozenset(rule["answered_by"] for rule in rules if "answered_by" in rule)
    tools = min((SHOWN_TOOLS.index(rule["tools"]) for rule in rules if "tools" in rule), default=len(SHOWN_TOOLS))
    return models, -tools


_VALUES: dict[RuleEffect, Callable[[list[dict[str, Any]]], Value]] = {
    RuleEffect.CONSENT: _consent,
    RuleEffect.CEILING: _ceiling,
    RuleEffect.ISOLATION: _isolation,
    RuleEffect.OBLIGE: _obligations,
    RuleEffect.PRICE: _price,
    RuleEffect.DEGRADE: _degradation,
}


# Comparing.


def compare_values(aspect: RuleEffect | None, before: Value, after: Value) -> str:
    """Empty when nothing changes."""
    if before == after:
        return ""
    if _restricts(aspect, after, before):
        return NARROWER
    return WIDER if _restricts(aspect, before, after) else DIFFERENT


def _restricts(aspect: RuleEffect | None, a: Value, b: Value) -> bool:
    """``a`` leaves no more than ``b`` does."""
    match aspect:
        case None:
            return bool(b or not a)
        case RuleEffect.CONSENT:
            return b is None or (a is not None and a[0] >= b[0] and a[1] >= b[1])
        case RuleEffect.CEILING:
            return _narrower(a, b)
        case RuleEffect.ISOLATION:
            return bool(a[0] >= b[0] and a[1] >= b[1])
        case RuleEffect.DEGRADE:
            return bool(a[0] >= b[0] and a[1] >= b[1])
        case _:  # obligations or a price: more restricts more
            return bool(a >= b)


def _narrower(a: Value, b: Value) -> bool:
    (bound, limits), (wide_bound, wide_limits) = a, b
    if wide_bound is not None and (bound is None or not bound <= wide_bound):
        return False
    own = dict(limits)
    return all(name in own and own[name] <= amount for name, amount in wide_limits)


# Telling.


def as_json(aspect: RuleEffect | None, value: Value) -> Any:
    """A value as it is kept and answered, in no language."""
    match aspect:
        case None:
            return "allowed" if value else "denied"
        case RuleEffect.CONSENT:
            return None if value is None else {"mode": MODES[value[0]], "validity_s": -value[1]}
        case RuleEffect.CEILING:
            bound, limits = value
            return {"capabilities": None if bound is None else bound.names(), "limits": dict(limits)}
        case RuleEffect.ISOLATION:
            return {"level": LEVELS[value[0]], "untrusted": value[1]}
        case RuleEffect.OBLIGE:
            return [json.loads(each) for each in sorted(value)]
        case RuleEffect.DEGRADE:
            models, tools = value
            return {"answered_by": sorted(models), "tools": (*SHOWN_TOOLS, None)[-tools]}
        case _:
            return value


def describe_value(aspect: str, value: Any, *, currency: str) -> str:
    """What :func:`as_json` made, for people, in their language. ``currency``: in which the reader's tenant is charged."""
    match aspect:
        case RuleEffect.CONSENT:
            return _describe_consent(value)
        case RuleEffect.CEILING:
            names = value["capabilities"]
            said = [gettext("any capability")] if names is None else capability_texts(names)
            limits = [limit_text(name, amount) for name, amount in value["limits"].items()]
            return join_parts([*(said or [gettext("no capability")]), *limits])
        case RuleEffect.OBLIGE:
            return join_parts(describe_obligation(each) for each in value) or gettext("no obligation")
        case RuleEffect.PRICE:
            return format_charge(value, currency)
        case RuleEffect.DEGRADE:
            return _describe_degradation(value)
        case RuleEffect.ISOLATION:
            return describe_isolation(
                value if isinstance(value, dict) else {"level": value}
            )  # a text: of an older version
        case _:
            return gettext("allowed") if value == "allowed" else gettext("denied")


def join_parts(parts: Iterable[str]) -> str:
    return gettext(", ").join(parts)


def _describe_consent(value: Any) -> str:
    if value is None:
        return gettext("no consent")
    words = {"once": gettext("consent once"), "period": gettext("consent for a time")}
    return join_parts([words.get(value["mode"], gettext("standing consent")), quantities.span(value["validity_s"])])


def _describe_degradation(value: Any) -> str:
    return join_parts(describe_lessening(value)) or gettext("as asked for")


def describe_lessening(value: dict[str, Any]) -> list[str]:
    """Of a rule, or of what rules add up to."""
    models = value.get("answered_by") or []
    said = [
        gettext("answered by %(model)s") % {"model": each} for each in ([models] if isinstance(models, str) else models)
    ]
    words = {"none": gettext("without tools"), "read_only": gettext("with tools that only read")}
    return [*said, words[value["tools"]]] if value.get("tools") else said


def describe_isolation(each: dict[str, Any]) -> str:
    """Of a rule, or of what rules add up to."""
    level = each.get("level", "")
    if not each.get("untrusted"):
        return str(level)
    return gettext("%(level)s, as untrusted code") % {"level": level} if level else gettext("as untrusted code")


def describe_obligation(each: dict[str, Any]) -> str:
    words = {"mask": gettext("mask"), "redact": gettext("redact"), "watermark": gettext("watermark")}
    return f"{words[each['action']]} {each.get('pointer', each.get('detector', ''))}".strip()


def format_charge(micros: int, currency: str) -> str:
    """Millionths of a currency to the last of them, without needless zeros: 2500 is 0.0025."""
    amount = (Decimal(micros) / 1_000_000).normalize()
    return f"{format_number(amount, max(2, -int(amount.as_tuple().exponent)))} {currency}"
