"""Compliance: whether a product may be sold and sent to a country, under which conditions, and by which rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from commerce import catalog, tables
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from commerce.catalog import Product

TTL_SECONDS = 3_600
SEVERITY = {"allowed": 0, "restricted": 1, "blocked": 2}

COMPARE: dict[str, Callable[[str, Any], bool]] = {
    "exists": lambda _actual, _wanted: True,
    "eq": lambda actual, wanted: bool(actual == wanted),
    "in": lambda actual, wanted: actual in wanted,
    "gt": lambda actual, wanted: Decimal(actual) > Decimal(wanted),
    "ge": lambda actual, wanted: Decimal(actual) >= Decimal(wanted),
    "le": lambda actual, wanted: Decimal(actual) <= Decimal(wanted),
}


@dataclass(frozen=True, slots=True)
class Item:
    """What the rules look at."""

    label: str
    hs_code: str
    origin: str
    quantity: int
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule that applies. ``satisfied`` is true when what it asks for was shown, for example the buyer's age."""

    rule: Mapping[str, Any]
    satisfied: bool

    @property
    def effect(self) -> str:
        return "allowed" if self.satisfied else str(self.rule["effect"])


@dataclass(frozen=True, slots=True)
class Verdict:
    item: Item
    findings: tuple[Finding, ...]
    checked_rules: int

    @property
    def decision(self) -> str:
        return max((finding.effect for finding in self.findings), key=SEVERITY.__getitem__, default="allowed")

    @property
    def missing_age(self) -> int | None:
        """The age that must still be verified, if any."""
        return max((f.rule["minimum_age"] for f in self.findings if "minimum_age" in f.rule and not f.satisfied),
                   default=None)  # fmt: skip


def item_of(product: Product, quantity: int) -> Item:
    return Item(product.sku, product.hs_code, product.origin, quantity, product.attributes)


def _condition_holds(condition: Mapping[str, Any], item: Item) -> bool:
    if "hs_prefixes" in condition:
        return item.hs_code.startswith(tuple(condition["hs_prefixes"]))
    if "origins" in condition:
        return item.origin in condition["origins"]
    actual = item.attributes.get(condition["attribute"])
    return actual is not None and COMPARE[condition["op"]](actual, condition.get("value"))


def _applies(rule: Mapping[str, Any], item: Item, destination: str) -> bool:
    named = destination in rule["destinations"] or "*" in rule["destinations"]
    return (
        named
        and destination not in rule.get("except", [])
        and item.quantity >= rule.get("min_quantity", 1)
        and all(_condition_holds(condition, item) for condition in rule["when"])
    )


def judge(item: Item, destination: str, verified_age: int | None, at: datetime) -> Verdict:
    """Apply all rules in force; the strictest one that applies decides."""
    rules = tables.in_force(tables.read(tables.COMPLIANCE_RULES)["rules"], at)
    findings = [
        Finding(rule, satisfied="minimum_age" in rule and (verified_age or 0) >= rule["minimum_age"])
        for rule in rules
        if _applies(rule, item, destination)
    ]
    findings.sort(key=lambda finding: (-SEVERITY[finding.effect], finding.rule["id"]))
    return Verdict(item, tuple(findings), len(rules))


def check_not_blocked(verdict: Verdict, *, pointer: str) -> None:
    """Refuse what may not be sent, naming the rules."""
    if verdict.decision != "blocked":
        return
    blocking = [finding.rule for finding in verdict.findings if finding.effect == "blocked"]
    raise runtime.ComplianceBlocked(
        f"{verdict.item.label} cannot be sent there: {blocking[0]['reason']}",
        item=verdict.item.label,
        pointer=pointer,
        rules=[{"id": rule["id"], "version": rule["version"], "reason": rule["reason"]} for rule in blocking],
        ruleset_version=tables.version(tables.COMPLIANCE_RULES),
    )


def finding_to_json(finding: Finding) -> dict[str, Any]:
    rule = finding.rule
    return {
        "rule_id": rule["id"],
        "rule_version": rule["version"],
        "effect": rule["effect"],
        "satisfied": finding.satisfied,
        "reason": rule["reason"],
        "requirements": list(rule.get("requirements", [])),
        "minimum_age": rule.get("minimum_age"),
        "citations": list(rule["citations"]),
    }


def _read_item(sku: str | None, item: dict[str, Any] | None, quantity: int) -> Item:
    if sku is not None:
        return item_of(catalog.find_product(sku), quantity)
    if item is None:
        raise runtime.InvalidArgument("Name a `sku`, or describe the goods in `item`.", pointer="")
    attributes = {name: str(value) for name, value in item.get("attributes", {}).items() if value is not False}
    return Item(item.get("name", item["hs_code"]), item["hs_code"], item["country_of_origin"], quantity, attributes)


def _check_country(country: str) -> None:
    if country not in tables.read("countries.json")["codes"]:
        raise runtime.InvalidArgument(
            "The destination is not an ISO 3166-1 country code.", pointer="/destination_country"
        )


def check_item(
    destination_country: str,
    sku: str | None = None,
    item: dict[str, Any] | None = None,
    quantity: int = 1,
    verified_age: int | None = None,
    enforce: bool = False,
) -> dict[str, Any]:
    """The decision on one product for one destination, with every rule that speaks to it."""
    call = runtime.current_call()
    tables.cite("ruleset", tables.COMPLIANCE_RULES)
    if sku is not None:
        tables.cite("price_list", tables.PRICE_LIST)
    _check_country(destination_country)
    verdict = judge(_read_item(sku, item, quantity), destination_country, verified_age, call.started_at)
    if enforce:
        check_not_blocked(verdict, pointer="/sku" if sku is not None else "/item")
    if verdict.decision == "restricted":
        runtime.warn("The goods may be sent only when every requirement is met.")
    runtime.set_ttl(TTL_SECONDS)
    return {
        "decision": verdict.decision,
        "item": {"label": verdict.item.label, "hs_code": verdict.item.hs_code,
                 "country_of_origin": verdict.item.origin, "quantity": quantity},
        "destination_country": destination_country,
        "reasons": [finding_to_json(finding) for finding in verdict.findings],
        "checked_rules": verdict.checked_rules,
        "ruleset_version": tables.version(tables.COMPLIANCE_RULES),
        "checked_at": tables.timestamp(call.started_at),
    }  # fmt: skip
