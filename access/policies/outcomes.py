"""What do the matched rules add up to in one respect, and is that wider or narrower than before?

Respects: whether the call is allowed (None), and what each effect adds to an allowed call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from access.capabilities import Capabilities
from access.policies.clauses import DEFAULT_VALIDITY_S, LEVELS, MODES, Effect
from toolhub.kernel import wording
from toolhub.kernel.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from access.policies.classes import Unit

WIDER, NARROWER, DIFFERENT = "wider", "narrower", "different"
Value = Any


def value_of(aspect: Effect | None, units: Iterable[Unit]) -> Value:
    """What the units add up to; equal values mean the same."""
    if aspect is None:
        effects = {unit.effect for unit in units}
        return Effect.PERMIT in effects and Effect.FORBID not in effects
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
    return max((LEVELS.index(rule["level"]) for rule in rules), default=0)


def _oblige(rules: list[dict[str, Any]]) -> Value:
    return frozenset(canonical(each) for rule in rules for each in rule["obligations"])


def _price(rules: list[dict[str, Any]]) -> Value:
    return max((rule["amount_micros"] for rule in rules), default=0)


_VALUES: dict[Effect, Callable[[list[dict[str, Any]]], Value]] = {
    Effect.CONSENT: _consent,
    Effect.CEILING: _ceiling,
    Effect.ISOLATION: _isolation,
    Effect.OBLIGE: _oblige,
    Effect.PRICE: _price,
}


# Comparing.


def direction_of(aspect: Effect | None, before: Value, after: Value) -> str:
    """Empty when nothing changes."""
    if before == after:
        return ""
    if _restricts(aspect, after, before):
        return NARROWER
    return WIDER if _restricts(aspect, before, after) else DIFFERENT


def _restricts(aspect: Effect | None, a: Value, b: Value) -> bool:
    """``a`` leaves no more than ``b`` does."""
    match aspect:
        case None:
            return bool(b or not a)
        case Effect.CONSENT:
            return b is None or (a is not None and a[0] >= b[0] and a[1] >= b[1])
        case Effect.CEILING:
            return _narrower(a, b)
        case _:  # a level, obligations or a price: more restricts more
            return bool(a >= b)


def _narrower(a: Value, b: Value) -> bool:
    (bound, limits), (wide_bound, wide_limits) = a, b
    if wide_bound is not None and (bound is None or not bound <= wide_bound):
        return False
    own = dict(limits)
    return all(name in own and own[name] <= amount for name, amount in wide_limits)


# Telling.


def told(aspect: Effect | None, value: Value) -> str:
    """For people, in their language."""
    match aspect:
        case None:
            return gettext("allowed") if value else gettext("denied")
        case Effect.CONSENT:
            if value is None:
                return gettext("no consent")
            words = {"once": gettext("consent once"), "period": gettext("consent for a time")}
            mode = words.get(MODES[value[0]], gettext("standing consent"))
            return f"{mode}, {wording.span(-value[1])}"
        case Effect.CEILING:
            return _ceiling_told(value)
        case Effect.ISOLATION:
            return LEVELS[value]
        case Effect.OBLIGE:
            said = sorted(each.decode() for each in value)
            return "; ".join(said) if said else gettext("no obligation")
        case _:
            return money(value)


def _ceiling_told(value: Value) -> str:
    bound, limits = value
    said = [gettext("any capability")] if bound is None else bound.names() or [gettext("no capability")]
    return ", ".join([*said, *(f"{name} {amount:,}" for name, amount in limits)])


def money(micros: int) -> str:
    """Millionths as a decimal, without needless zeros: 2500 is 0.0025."""
    text = f"{micros // 1_000_000:,}.{micros % 1_000_000:06d}".rstrip("0")
    return text + "0" * max(0, 2 - len(text.partition(".")[2]))
