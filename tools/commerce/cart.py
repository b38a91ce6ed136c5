"""Cart: what a whole order comes to, with coupon, shipping, duties, taxes and fees, and what is paid when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commerce import addresses, compliance, coupons, money, pricing, shipping, tables, tax
from unitools import runtime

if TYPE_CHECKING:
    from datetime import datetime
    from decimal import Decimal

    from commerce.addresses import Address
    from commerce.compliance import Verdict
    from commerce.coupons import Reduction
    from commerce.pricing import PricedLine
    from commerce.shipping import Option
    from commerce.tax import Estimate


@dataclass(frozen=True, slots=True)
class Cart:
    """A fully priced order. ``total`` is what is paid now and is the sum of ``components``, exactly."""

    currency: str
    incoterm: str
    address: Address
    lines: tuple[PricedLine, ...]
    reduction: Reduction
    option: Option
    estimate: Estimate
    verdicts: tuple[Verdict, ...]

    @property
    def goods(self) -> Decimal:
        return sum((line.total for line in self.lines), money.ZERO)

    @property
    def components(self) -> list[tuple[str, Decimal]]:
        now = self.estimate.total(collected="checkout")
        duties = self.estimate.total(kinds=("duty",), collected="checkout")
        fees = self.estimate.total(kinds=("fee",), collected="checkout")
        return [
            ("goods", self.goods),
            ("coupon", -self.reduction.off_goods),
            ("shipping", self.option.price),
            ("shipping_coupon", -self.reduction.off_shipping),
            ("duties", duties),
            ("taxes", now - duties - fees),
            ("fees", fees),
        ]

    @property
    def total(self) -> Decimal:
        return sum((amount for _, amount in self.components), money.ZERO)

    @property
    def on_delivery(self) -> Decimal:
        return self.estimate.total(collected="delivery")

    @property
    def missing_age(self) -> int | None:
        return max((verdict.missing_age or 0 for verdict in self.verdicts), default=0) or None


def cite_sources() -> None:
    """An order rests on all tables; each goes into the evidence with its version."""
    tables.cite("price_list", tables.PRICE_LIST)
    tables.cite("stock", tables.STOCK)
    tables.cite("exchange_rates", tables.EXCHANGE_RATES)
    tables.cite("rate_table", tables.CARRIERS)
    tables.cite("ruleset", tables.ADDRESSES, tables.TAX_RULES, tables.COMPLIANCE_RULES, tables.COUPONS)


def _choose_option(options: list[Option], excluded: list[dict[str, str]], option_id: str | None) -> Option:
    if not options:
        raise runtime.Conflict(
            "No service carries these goods to this address.", pointer="/shipping_option_id", excluded=excluded
        )
    if option_id is None:
        runtime.warn(f"No shipping option was chosen: the cheapest, {options[0].id}, is used.")
        return options[0]
    chosen = next((option for option in options if option.id == option_id), None)
    if chosen is None:
        raise runtime.InvalidArgument(
            "This shipping option is not offered for these goods and this address; ask for the options again.",
            pointer="/shipping_option_id", offered=[option.id for option in options],
        )  # fmt: skip
    return chosen


def fill_cart(
    *, lines: list[dict[str, Any]], destination: dict[str, Any], shipping_option_id: str | None, currency: str,
    coupon_code: str | None, incoterm: str, verified_age: int | None, complete_address: bool, at: datetime,
) -> Cart:  # fmt: skip
    """Check and price everything, in the order in which a buyer can mend it: address, goods, shipping, coupon."""
    address = addresses.check_address(destination, complete=complete_address)
    wanted = shipping.read_items(lines, pointer="/lines")
    verdicts = []
    for index, (product, quantity) in enumerate(wanted):
        verdict = compliance.judge(compliance.item_of(product, quantity), address.country, verified_age, at)
        compliance.check_not_blocked(verdict, pointer=f"/lines/{index}")
        verdicts.append(verdict)
    priced = tuple(pricing.price_line(product.sku, quantity, currency, at) for product, quantity in wanted)
    for index, (line, entry) in enumerate(zip(priced, lines, strict=True)):
        pointer = f"/lines/{index}/expected_unit_price"
        pricing.check_expected_price(line, entry.get("expected_unit_price"), pointer=pointer)
    option = _choose_option(*shipping.find_options(wanted, address, currency, at), shipping_option_id)
    reduction = coupons.apply_coupon(coupon_code, priced, option.price, currency, at)
    taxable = [
        tax.TaxableLine(line.product.sku, line.product.hs_code, line.product.origin, line.total - off)
        for line, off in zip(priced, reduction.off_lines, strict=True)
    ]
    estimate = tax.estimate(
        country=address.country, state=address.state, ship_from=option.warehouse.country, lines=taxable,
        carriage=option.price - reduction.off_shipping, currency=currency, incoterm=incoterm, at=at,
    )  # fmt: skip
    return Cart(currency, incoterm, address, priced, reduction, option, estimate, tuple(verdicts))


def warn_of_conditions(cart: Cart) -> None:
    for verdict in cart.verdicts:
        for finding in verdict.findings:
            if finding.effect == "restricted":
                runtime.warn(f"{verdict.item.label}: {finding.rule['reason']}")
    if cart.on_delivery:
        runtime.warn("Duties or taxes are collected on delivery and come on top of the total.")


def cart_to_json(cart: Cart) -> dict[str, Any]:
    """What the total and the draft order have in common."""
    currency = cart.currency
    return {
        "currency": currency,
        "incoterm": cart.incoterm,
        "destination": cart.address.area(),
        "lines": [
            {**pricing.line_to_json(line), "coupon_discount": money.show(off, currency)}
            for line, off in zip(cart.lines, cart.reduction.off_lines, strict=True)
        ],
        "coupon_code": cart.reduction.code or None,
        "shipping": shipping.option_to_json(cart.option, currency),
        "charges": [tax.levy_to_json(levy, currency) for levy in cart.estimate.levies],
        "components": [{"kind": kind, "amount": money.show(amount, currency)} for kind, amount in cart.components],
        "total": money.show(cart.total, currency),
        "on_delivery": money.show(cart.on_delivery, currency),
        "landed_total": money.show(cart.total + cart.on_delivery, currency),
        "compliance": [
            {
                "sku": verdict.item.label,
                "decision": verdict.decision,
                "rules": [{"id": f.rule["id"], "version": f.rule["version"]} for f in verdict.findings],
            }
            for verdict in cart.verdicts
        ],
        "required_age": cart.missing_age,
        "versions": {
            "price_list": tables.version(tables.PRICE_LIST),
            "rate_table": tables.version(tables.CARRIERS),
            "duty_tax_rules": tables.version(tables.TAX_RULES),
            "compliance_rules": tables.version(tables.COMPLIANCE_RULES),
            "exchange_rates": tables.version(tables.EXCHANGE_RATES),
        },
    }
