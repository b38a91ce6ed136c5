"""Normal form: the one way of writing what a file and the database may write in several.

Expressions, times, orders without meaning, and shorthands. Two things that mean the same are equal values afterwards.
"""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Any

from django.utils.dateparse import parse_datetime

from access.notifications.services import EVENTS
from access.roles import SCOPES, Role
from kernel.problems import SchemaInvalid
from llm.documents import read_document
from llm.prices import PriceDocument
from toolhub.configuration.findings import build_finding
from unitools import expressions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

    from toolhub.configuration.findings import Finding

DAY_S = 24 * 60 * 60
PRIVATE_PARTS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


def normalize_entry(section: str, said: dict[str, Any]) -> list[Finding]:
    """Write what an entry of a file says in the one way, in place; what cannot be read, with pointers into the entry."""
    rewrite = SETTLE.get(section)
    return rewrite(said) if rewrite is not None else []


# One value at a time.


def normalize_expression(tools: str) -> str:
    """The expression as the hub writes it; ``ValueError`` when it is none."""
    return str(expressions.parse(tools))


def normalize_conditions(conditions: Any) -> Any:
    """Without the values that are null, which is the same as leaving them out."""
    return [{key: value for key, value in each.items() if key != "value" or value is not None} for each in conditions]


def normalize_limits(limits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(limits, key=lambda each: (each["dimension"], each["window_s"]))


def normalize_exceptions(exceptions: list[dict[str, str]]) -> list[dict[str, str]]:
    return sorted(exceptions, key=lambda each: [each.get("agent", ""), each.get("tool", ""), each["permission"]])


def parse_moment(text: str) -> datetime | None:
    """None for a text that is no moment, or one without an offset."""
    try:
        at = parse_datetime(text)
        return at.astimezone(UTC) if at is not None and at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def format_moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def strip_private_keys(jwks: Any) -> Any:
    """A key set without what belongs to its owner alone."""
    if not isinstance(jwks, dict) or not isinstance(jwks.get("keys"), list):
        return jwks
    keys = [
        {name: part for name, part in key.items() if name not in PRIVATE_PARTS} if isinstance(key, dict) else key
        for key in jwks["keys"]
    ]
    return {**jwks, "keys": keys}


def order_values(values: Collection[str], order: Collection[str]) -> list[str]:
    """As the hub lists them; what it does not know stands last, for the rule to refuse that knows why."""
    return [each for each in order if each in values] + sorted(set(values) - set(order))


# One section at a time.


def _grant(said: dict[str, Any]) -> list[Finding]:
    findings = []
    try:
        said["tools"] = normalize_expression(said["tools"])
    except ValueError as wrong:
        findings.append(build_finding("/tools", str(wrong)))
    said["reason"] = said["reason"].strip()
    said["conditions"] = normalize_conditions(said.get("conditions", []))
    limits = [dict(each) for each in said.get("limits", [])]
    if "calls_limit" in said:
        window_s = said.pop("window_s", DAY_S)
        limits.append({"dimension": "calls", "amount": said.pop("calls_limit"), "window_s": window_s})
    for each in limits:
        _window(each)
    if len({(each["dimension"], each["window_s"]) for each in limits}) != len(limits):
        findings.append(build_finding("/limits", "Two limits are of the same dimension and window."))
    said["limits"] = normalize_limits(limits)
    if said.get("expires_at") is not None:
        at = parse_moment(said["expires_at"])
        if at is None:
            findings.append(
                build_finding("/expires_at", "Write a moment with its offset, such as 2027-01-31T12:00:00Z.")
            )
        else:
            said["expires_at"] = format_moment(at)
    return findings


def _window(said: dict[str, Any]) -> list[Finding]:
    said.setdefault("window_s", 0 if said["dimension"] == "concurrency" else DAY_S)
    return []


def _budget(said: dict[str, Any]) -> list[Finding]:
    if "reason" in said:
        said["reason"] = said["reason"].strip()
    return _window(said)


def _issuer(said: dict[str, Any]) -> list[Finding]:
    for name in ("issuer", "audience", "jwks_url"):
        if name in said:
            said[name] = said[name].strip()
    if said.get("jwks_url") and said.get("jwks"):
        return [build_finding("/jwks", "Say where the issuer's keys are, or give them; one of the two.")]
    if said.get("jwks_url"):
        said["jwks"] = None
    elif said.get("jwks"):
        said["jwks_url"], said["jwks"] = "", strip_private_keys(said["jwks"])
    return []


def _identity(said: dict[str, Any]) -> list[Finding]:
    said["scopes"] = order_values(said["scopes"], SCOPES)
    return []


def _notification(said: dict[str, Any]) -> list[Finding]:
    said["target"], said["events"] = said["target"].strip(), order_values(said["events"], EVENTS)
    return []


def _member(said: dict[str, Any]) -> list[Finding]:
    said["user"], said["roles"] = said["user"].strip(), order_values(said["roles"], Role.values)
    if "exceptions" in said:
        said["exceptions"] = normalize_exceptions(said["exceptions"])
    return []


def _prices(said: dict[str, Any]) -> list[Finding]:
    try:
        said |= read_document(PriceDocument, said).to_json()
    except SchemaInvalid as refused:
        return [build_finding(each["pointer"], each["message"]) for each in refused.details["findings"]]
    return []


SETTLE: dict[str, Callable[[dict[str, Any]], list[Finding]]] = {
    "model_prices": _prices,
    "grants": _grant,
    "budgets": _budget,
    "issuers": _issuer,
    "identities": _identity,
    "notifications": _notification,
    "members": _member,
}
