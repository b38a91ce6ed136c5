"""Clauses: what a rule says besides its condition, and whether that is well-formed.

Ceilings (capabilities, limits), isolation levels, obligations, prices, demands for consent, and what less a model may do.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from access.models import ConsentMode
from access.policies.findings import PolicyFinding, escape_step, quote_value, suggest_known
from access.redaction.obligations import check_obligations
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.policies.findings import Found


class RuleEffect(StrEnum):
    PERMIT = "permit"
    FORBID = "forbid"
    CONSENT = "consent"
    CEILING = "ceiling"
    ISOLATION = "isolation"
    OBLIGE = "oblige"
    PRICE = "price"
    DEGRADE = "degrade"


LEVELS = ("shared", "fresh", "single", "cold")  # weakest first
MODES: tuple[str, ...] = (ConsentMode.STANDING, ConsentMode.PERIOD, ConsentMode.ONCE)  # weakest first
DEFAULT_VALIDITY_S = 24 * 60 * 60
VALIDITY_S = (60, 365 * 24 * 60 * 60)
LIMITS: dict[str, tuple[int, int]] = {
    "timeout_ms": (1, 24 * 60 * 60 * 1000),
    "memory_bytes": (32 * 1024 * 1024, 64 * 1024**3),
    "max_bytes_in": (2, 1024**3),
    "max_bytes_out": (2, 1024**3),
}
MAX_OBLIGATIONS = 20
MODEL_ID = re.compile(r"model(\.[a-z][a-z0-9_]*){2}")
SHOWN_TOOLS = ("none", "read_only")  # the strictest first
MAX_PRICE = 1_000_000_000_000  # a million whole units

# What a rule of an effect says besides id, effect, when and note; of several parts, at least one.
SAYS: dict[RuleEffect, tuple[str, ...]] = {
    RuleEffect.PERMIT: (),
    RuleEffect.FORBID: (),
    RuleEffect.CONSENT: ("consent",),
    RuleEffect.CEILING: ("capabilities", "limits"),
    RuleEffect.ISOLATION: ("level", "untrusted"),
    RuleEffect.OBLIGE: ("obligations",),
    RuleEffect.PRICE: ("amount_micros",),
    RuleEffect.DEGRADE: ("answered_by", "tools"),
}


def _whole(value: Any, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _consent(value: Any, pointer: str) -> Found:
    if not isinstance(value, dict) or not value:
        yield PolicyFinding(pointer, "consent", "consent is an object with mode.", 'Write {"mode": "once"}.')
        return
    for name in sorted(set(value) - {"mode", "validity_s"}, key=str)[:20]:
        yield PolicyFinding(
            f"{pointer}/{escape_step(name)}", "consent", f"There is no {quote_value(name)}.", "Use mode and validity_s."
        )
    mode = value.get("mode")
    if mode not in MODES:
        yield PolicyFinding(
            f"{pointer}/mode", "consent", f"There is no mode {quote_value(mode)}.", suggest_known(mode, MODES)
        )
    least, most = VALIDITY_S
    if "validity_s" in value and not _whole(value["validity_s"], least, most):
        message = f"validity_s is a number of seconds from {least} to {most:,}."
        yield PolicyFinding(f"{pointer}/validity_s", "consent", message, f"For example {DEFAULT_VALIDITY_S} for a day.")


def _capabilities(value: Any, pointer: str) -> Found:
    problem = "" if isinstance(value, dict) else "it is not an object"
    if not problem:
        try:
            Capabilities.from_json(value)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = str(error)[:300]
    if problem:
        fix = 'Write them as in a manifest; {} lets nothing through, {"tmp": 1048576} only scratch space.'
        yield PolicyFinding(pointer, "capabilities", f"These capabilities cannot be read: {problem}", fix)


def _limits(value: Any, pointer: str) -> Found:
    if not isinstance(value, dict) or not value:
        yield PolicyFinding(
            pointer, "limits", "limits is an object with at least one limit.", f"Use {', '.join(LIMITS)}."
        )
        return
    for name, amount in value.items():
        if name not in LIMITS:
            fix = suggest_known(name, tuple(LIMITS))
            yield PolicyFinding(
                f"{pointer}/{escape_step(name)}", "limits", f"There is no limit {quote_value(name)}.", fix
            )
        elif not _whole(amount, *LIMITS[name]):
            least, most = LIMITS[name]
            message = f"{name} is a whole number from {least:,} to {most:,}."
            yield PolicyFinding(f"{pointer}/{name}", "limits", message, "Write a number.")


def _level(value: Any, pointer: str) -> Found:
    if value not in LEVELS:
        yield PolicyFinding(
            pointer, "isolation", f"There is no isolation level {quote_value(value)}.", suggest_known(value, LEVELS)
        )


def _untrusted(value: Any, pointer: str) -> Found:
    if value is not True:
        message = "untrusted is true, or it is left out: no rule can vouch for what another one does not trust."
        yield PolicyFinding(pointer, "isolation", message, "Write true, or take it out.")


def _obligations(value: Any, pointer: str) -> Found:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_OBLIGATIONS:
        message = f"obligations is a list of 1 to {MAX_OBLIGATIONS}."
        yield PolicyFinding(pointer, "obligations", message, "Write […].")
        return
    for wrong in check_obligations(value):
        fix = 'For example {"action": "mask", "detector": "email"}.'
        yield PolicyFinding(f"{pointer}{wrong['pointer']}", "obligations", wrong["message"], fix)


def _price(value: Any, pointer: str) -> Found:
    if not _whole(value, 0, MAX_PRICE):
        message = f"amount_micros is a whole number of millionths from 0 to {MAX_PRICE:,}."
        yield PolicyFinding(pointer, "price", message, "For example 2500 for 0.0025 a call.")


def _answered_by(value: Any, pointer: str) -> Found:
    if not isinstance(value, str) or not MODEL_ID.fullmatch(value):
        message = f"{quote_value(value)} is no model: its id has three segments, model.provider.alias."
        yield PolicyFinding(pointer, "degrade", message, "Write the id of a model that the tenant has connected.")


def _shown_tools(value: Any, pointer: str) -> Found:
    if value not in SHOWN_TOOLS:
        message = f"A model cannot be shown {quote_value(value)} of the tools."
        yield PolicyFinding(pointer, "degrade", message, suggest_known(value, SHOWN_TOOLS))


CHECKS: dict[str, Callable[[Any, str], Found]] = {
    "consent": _consent,
    "capabilities": _capabilities,
    "limits": _limits,
    "level": _level,
    "untrusted": _untrusted,
    "obligations": _obligations,
    "amount_micros": _price,
    "answered_by": _answered_by,
    "tools": _shown_tools,
}
