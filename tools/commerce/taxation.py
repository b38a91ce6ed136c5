"""Taxation: the duty, tax and fee rules of a country that apply to a line of goods, and what they come to.

Each amount that is charged carries the id and version of the rule it comes from. The rules are data: see
``data/duty_tax_rules.json``. Three kinds of rule come before the ordinary tariff: a *low value* rule exempts small
consignments (or puts a flat duty on them), a *regime* replaces the tariff (cross-border e-commerce, courier schemes),
and an *additional* duty comes on top of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from commerce import money, tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

Rule = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Goods:
    """One line of a consignment, in the country's own currency. ``carriage`` is its share of freight and insurance."""

    hs_code: str
    origin: str
    value: Decimal
    carriage: Decimal


@dataclass(frozen=True, slots=True)
class Charge:
    """One amount that a rule asks for, in the country's own currency. ``rate`` is None for a fixed amount."""

    kind: str
    name: str
    rate: Decimal | None
    base: Decimal
    amount: Decimal
    rule_id: str
    rule_version: str


@dataclass(slots=True)
class Assessment:
    """What a consignment costs at the border: charges by line, and those on the whole of it."""

    currency: str
    lines: list[list[Charge]]
    consignment: list[Charge] = field(default_factory=list)
    applied: list[dict[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    taxes_by_seller: bool = False


def rules_of(country: str) -> dict[str, Any] | None:
    """The country's rules, with those it shares with a customs union; None when there are none."""
    table = tables.read(tables.TAX_RULES)
    own: dict[str, Any] | None = table["countries"].get(country)
    if own is None or "inherits" not in own:
        return own
    return {**table["shared"][own["inherits"]], **own}


def customs_area(country: str) -> str:
    """Goods move without import between countries of one area."""
    rules = rules_of(country) or {}
    return str(rules.get("customs_union", country))


def _matches(prefixes: Iterable[str], hs_code: str) -> int:
    """Length of the longest prefix that fits, -1 when none does."""
    return max((len(prefix) for prefix in prefixes if hs_code.startswith(prefix)), default=-1)


def _most_specific(rules: Iterable[Rule], goods: Goods) -> Rule | None:
    """The rule with the longest HS prefix; one that names the country of origin wins over one that does not."""
    fitting = [
        (goods.origin in rule.get("origins", []), _matches(rule["hs"], goods.hs_code), rule)
        for rule in rules
        if _matches(rule["hs"], goods.hs_code) >= 0 and goods.origin in rule.get("origins", [goods.origin])
    ]
    return max(fitting, key=lambda entry: entry[:2])[2] if fitting else None


def _excludes(rule: Rule, goods: Goods) -> bool:
    return _matches(rule.get("exclude_hs", []), goods.hs_code) >= 0 or goods.origin in rule.get("origins_except", [])


class Assessor:
    """Applies one country's rules of one day to one consignment."""

    def __init__(self, country: str, state: str, at: datetime) -> None:
        rules = rules_of(country)
        if rules is None:
            raise LookupError(country)
        self.rules, self.state, self.currency = rules, state, str(rules["currency"])
        self._at = at

    def _in_force(self, kind: str) -> list[Rule]:
        return tables.in_force(self.rules.get(kind, []), self._at)

    def _charge(self, rule: Rule, kind: str, name: str, rate: Decimal, base: Decimal, amount: Decimal) -> Charge:
        return Charge(kind, name, rate, base, money.round_money(amount, self.currency), rule["id"], rule["version"])

    def _low_value(self, goods_value: Decimal) -> list[Rule]:
        def reached(rule: Rule) -> bool:
            limit_currency = rule.get("threshold_currency", self.currency)
            limit = money.convert(Decimal(rule["threshold"]), limit_currency, self.currency)
            return goods_value <= limit

        return [rule for rule in self._in_force("low_value") if "threshold" in rule and reached(rule)]

    def _regime(self, goods_value: Decimal) -> Rule | None:
        for rule in self._in_force("regimes"):
            limit = money.convert(Decimal(rule["max_goods"]), rule.get("max_currency", self.currency), self.currency)
            if goods_value <= limit:
                return rule
        return None

    def _duties(self, goods: Goods, low_value: list[Rule], regime: Rule | None) -> list[Charge]:
        base = goods.value + (goods.carriage if self.rules["valuation"] == "CIF" else money.ZERO)
        for rule in low_value:
            if _excludes(rule, goods):
                continue
            if "flat_duty_per_line" in rule:
                flat = Decimal(rule["flat_duty_per_line"])
                return [Charge("duty", "Flat duty on low value goods", None, base, flat, rule["id"], rule["version"])]
            if "duty" in rule["exempts"]:
                return [self._charge(rule, "duty", "Low value exemption", money.ZERO, base, money.ZERO)]
        if regime is not None and not _excludes(regime, goods):
            rate = Decimal(regime["duty_rate"])
            return [self._charge(regime, "duty", regime["name"], rate, base, base * rate)]
        tariff = self._in_force("duties")
        charges = []
        if ordinary := _most_specific((rule for rule in tariff if not rule.get("additional")), goods):
            rate = Decimal(ordinary["rate"])
            charges.append(
                self._charge(ordinary, "duty", ordinary.get("name", "Customs duty"), rate, base, base * rate)
            )
        for rule in tariff:
            if rule.get("additional") and goods.origin in rule["origins"] and _matches(rule["hs"], goods.hs_code) >= 0:
                rate = Decimal(rule["rate"])
                charges.append(self._charge(rule, "duty", rule["name"], rate, base, base * rate))
        return charges

    def _tax_rate(self, rule: Rule) -> Decimal:
        return Decimal(rule.get("rates_by_state", {}).get(self.state, rule.get("rate", "0")))

    def _taxes(self, goods: Goods, duty: Decimal, exempt: Rule | None, factor: Decimal) -> list[Charge]:
        slots: dict[str, list[Rule]] = {}
        for candidate in self._in_force("taxes"):
            slots.setdefault(candidate["slot"], []).append(candidate)
        charges: list[Charge] = []
        for candidates in slots.values():
            rule = _most_specific(candidates, goods)
            if rule is None:
                continue
            if exempt is not None:
                charges.append(
                    self._charge(exempt, rule["kind"], "Low value exemption", money.ZERO, goods.value, money.ZERO)
                )
                continue
            # A consumption tax is part of what VAT is charged on; parallel taxes such as GST and PST are not.
            before = sum((charge.amount for charge in charges if rule["kind"] == "vat"), money.ZERO)
            base = goods.value if rule.get("base") == "goods" else goods.value + goods.carriage + duty + before
            rate = self._tax_rate(rule)
            if rule.get("method") == "inside":  # the tax is part of its own base
                base = money.round_money(base / (1 - rate), self.currency)
            amount = base * rate * factor
            charges.append(self._charge(rule, rule["kind"], rule["name"], rate * factor, base, amount))
        return charges

    def assess(self, lines: list[Goods], *, imported: bool) -> Assessment:
        """All charges on the consignment; ``imported`` is false when it does not cross a customs border."""
        goods_value = sum((goods.value for goods in lines), money.ZERO)
        low_value = self._low_value(goods_value) if imported else []
        regime = self._regime(goods_value) if imported else None
        result = Assessment(self.currency, [])
        duties_by_line = [self._duties(goods, low_value, regime) if imported else [] for goods in lines]
        if regime is not None and "duty_credit" in regime:
            self._deduct(regime, duties_by_line)
        for goods, duties in zip(lines, duties_by_line, strict=True):
            exempt = next((r for r in low_value if "tax" in r.get("exempts", []) and not _excludes(r, goods)), None)
            in_regime = regime is not None and not _excludes(regime, goods)
            factor = Decimal(regime.get("tax_factor", "1")) if regime is not None and in_regime else money.ONE
            duty = sum((charge.amount for charge in duties), money.ZERO)
            result.lines.append(duties + self._taxes(goods, duty, exempt, factor))
        if imported:
            self._add_consignment_charges(result, lines, low_value, regime)
        for special in [*low_value, *([regime] if regime else [])]:
            result.applied.append({"id": special["id"], "version": special["version"]})
            if "note" in special:
                result.notes.append(special["note"])
        ceiling = self.rules.get("seller_collects_tax_up_to")
        by_seller = any(tax.get("by_seller") for tax in self._in_force("taxes"))
        result.taxes_by_seller = not imported or by_seller or (ceiling is not None and goods_value <= Decimal(ceiling))
        return result

    def _deduct(self, regime: Rule, duties_by_line: list[list[Charge]]) -> None:
        """Take the regime's fixed deduction off the duties, at most down to zero, before taxes are added to them."""
        duties = [
            sum((c.amount for c in charges if c.rule_id == regime["id"]), money.ZERO) for charges in duties_by_line
        ]
        limit_currency = regime.get("max_currency", self.currency)
        deduction = money.convert(Decimal(regime["duty_credit"]), limit_currency, self.currency)
        parts = money.allocate(min(sum(duties, money.ZERO), deduction), duties, self.currency)
        for charges, duty, part in zip(duties_by_line, duties, parts, strict=True):
            if part:
                name = f"{regime['name']}: deduction"
                charges.append(Charge("duty", name, None, duty, -part, regime["id"], regime["version"]))

    def _add_consignment_charges(
        self, result: Assessment, lines: list[Goods], low_value: list[Rule], regime: Rule | None
    ) -> None:
        fee_exempt = any("fee" in rule.get("exempts", []) for rule in low_value)
        if not fee_exempt and regime is None:
            whole = sum((goods.value for goods in lines), money.ZERO)
            for fee in self._in_force("fees"):
                result.consignment.append(
                    Charge("fee", fee["name"], None, whole, Decimal(fee["amount"]), fee["id"], fee["version"])
                )
        self._drop_trifling_taxes(result)

    def _drop_trifling_taxes(self, result: Assessment) -> None:
        """Some countries do not collect a tax that comes to less than a few francs on the whole consignment."""
        for rule in self._in_force("low_value"):
            if "tax_amount_below" not in rule:
                continue
            taxes = [charge for charges in result.lines for charge in charges if charge.kind not in ("duty", "fee")]
            if not money.ZERO < sum((tax.amount for tax in taxes), money.ZERO) < Decimal(rule["tax_amount_below"]):
                continue
            for charges in result.lines:
                charges[:] = [self._waive(charge, rule) if charge in taxes else charge for charge in charges]
            result.applied.append({"id": rule["id"], "version": rule["version"]})

    def _waive(self, charge: Charge, rule: Rule) -> Charge:
        name = f"{charge.name}: too small to collect"
        return Charge(charge.kind, name, charge.rate, charge.base, money.ZERO, rule["id"], rule["version"])
