"""What do the matched rules add up to in one respect, and is that wider or narrower than before?

Respects: whether the call is allowed (None), and what each effect adds to an allowed call.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext

from access.policies.clauses import DEFAULT_VALIDITY_S, LEVELS, MODES, Effect
from toolhub.kernel import wording
from toolhub.kernel.canonical import canonical
from unitools.capabilities import Capabilities

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
    level = max((LEVELS.index(rule.get("level", LEVELS[0])) for rule in rules), default=0)
    return level, any(rule.get("untrusted", False) for rule in rules)


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
        case Effect.ISOLATION:
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


def as_json(aspect: Effect | None, value: Value) -> Any:
    """A value as it is kept and answered, in no language."""
    match aspect:
        case None:
            return "allowed" if value else "denied"
        case Effect.CONSENT:
            return None if value is None else {"mode": MODES[value[0]], "validity_s": -value[1]}
        case Effect.CEILING:
            bound, limits = value
            return {"capabilities": None if bound is None else bound.names(), "limits": dict(limits)}
        case Effect.ISOLATION:
            return {"level": LEVELS[value[0]], "untrusted": value[1]}
        case Effect.OBLIGE:
            return [json.loads(each) for each in sorted(value)]
        case _:
            return value


def told(aspect: str, value: Any) -> str:
    """What :func:`as_json` made, for people, in their language."""
    match aspect:
        case Effect.CONSENT:
            return _consent_told(value)
        case Effect.CEILING:
            names = value["capabilities"]
            said = [gettext("any capability")] if names is None else names or [gettext("no capability")]
            return ", ".join([*said, *(f"{name} {amount:,}" for name, amount in value["limits"].items())])
        case Effect.OBLIGE:
            return ", ".join(obligation_told(each) for each in value) or gettext("no obligation")
        case Effect.PRICE:
            return money(value)
        case Effect.ISOLATION:
            return isolation_told(value if isinstance(value, dict) else {"level": value})  # a text: of an older version
        case _:
            return gettext("allowed") if value == "allowed" else gettext("denied")


def _consent_told(value: Any) -> str:
    if value is None:
        return gettext("no consent")
    words = {"once": gettext("consent once"), "period": gettext("consent for a time")}
    return f"{words.get(value['mode'], gettext('standing consent'))}, {wording.span(value['validity_s'])}"


def isolation_told(each: dict[str, Any]) -> str:
    """Of a rule, or of what rules add up to."""
    level = each.get("level", "")
    if not each.get("untrusted"):
        return str(level)
    return gettext("%(level)s, as untrusted code") % {"level": level} if level else gettext("as untrusted code")


def obligation_told(each: dict[str, Any]) -> str:
    words = {"mask": gettext("mask"), "redact": gettext("redact"), "watermark": gettext("watermark")}
    return f"{words[each['action']]} {each.get('pointer', each.get('detector', ''))}".strip()


def money(micros: int) -> str:
    """Millionths as a decimal, without needless zeros: 2500 is 0.0025."""
    text = f"{micros // 1_000_000:,}.{micros % 1_000_000:06d}".rstrip("0")
    return text + "0" * max(0, 2 - len(text.partition(".")[2]))
