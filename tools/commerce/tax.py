"""Tax: the duties, taxes and fees to reckon with when goods go to a country, and who collects them when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commerce import addresses, catalog, money, tables, taxation
from commerce.pricing import price_line
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from decimal import Decimal

    from commerce.taxation import Charge

TTL_SECONDS = 86_400
ALCOHOL = ("2203", "2204", "2205", "2206", "2207", "2208")


@dataclass(frozen=True, slots=True)
class TaxableLine:
    """Goods as a caller names them; ``value`` is for the whole line, in the asked currency."""

    label: str
    hs_code: str
    origin: str
    value: Decimal


@dataclass(frozen=True, slots=True)
class Levy:
    """One charge in the asked currency. ``line`` is None for a charge on the whole consignment."""

    line: int | None
    charge: Charge
    base: Decimal
    amount: Decimal
    collected: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """All charges on one consignment, and what of them is paid when."""

    currency: str
    local_currency: str
    levies: tuple[Levy, ...]
    applied: tuple[dict[str, str], ...]

    def total(self, *, kinds: Sequence[str] | None = None, collected: str | None = None) -> Decimal:
        return sum(
            (
                levy.amount
                for levy in self.levies
                if (kinds is None or levy.charge.kind in kinds) and (collected is None or levy.collected == collected)
            ),
            money.ZERO,
        )

    @property
    def duties(self) -> Decimal:
        return self.total(kinds=("duty",))

    @property
    def fees(self) -> Decimal:
        return self.total(kinds=("fee",))

    @property
    def taxes(self) -> Decimal:
        return self.total() - self.duties - self.fees


def estimate(
    *, country: str, state: str, ship_from: str | None, lines: Sequence[TaxableLine], carriage: Decimal, currency: str,
    incoterm: str, at: datetime,
) -> Estimate:  # fmt: skip
    """Assess in the country's own currency, then show every charge in the asked one."""
    assessor = taxation.Assessor(country, state, at)
    local = assessor.currency
    shares = money.allocate(carriage, [line.value for line in lines], currency)
    goods = [
        taxation.Goods(
            line.hs_code, line.origin, money.convert(line.value, currency, local), money.convert(share, currency, local)
        )
        for line, share in zip(lines, shares, strict=True)
    ]
    imported = ship_from is None or taxation.customs_area(ship_from) != taxation.customs_area(country)
    assessment = assessor.assess(goods, imported=imported)
    for note in assessment.notes:
        runtime.warn(note)
    if any(line.hs_code.startswith(ALCOHOL) for line in lines):
        runtime.warn("Excise on alcohol depends on volume and strength and is not part of this estimate.")

    def when(charge: Charge) -> str:
        at_border = charge.kind in ("duty", "fee") or not assessment.taxes_by_seller
        return "delivery" if at_border and incoterm == "DAP" else "checkout"

    def levy(line: int | None, charge: Charge) -> Levy:
        base = money.convert(charge.base, local, currency)
        return Levy(line, charge, base, money.convert(charge.amount, local, currency), when(charge))

    levies = [levy(i, charge) for i, charges in enumerate(assessment.lines) for charge in charges]
    levies += [levy(None, charge) for charge in assessment.consignment]
    return Estimate(currency, local, tuple(levies), tuple(assessment.applied))


def levy_to_json(levy: Levy, currency: str) -> dict[str, Any]:
    rate = levy.charge.rate
    return {
        "line": levy.line,
        "kind": levy.charge.kind,
        "name": levy.charge.name,
        "rate": None if rate is None else f"{rate.normalize():f}",
        "base": money.show(levy.base, currency),
        "amount": money.show(levy.amount, currency),
        "collected": levy.collected,
        "rule_id": levy.charge.rule_id,
        "rule_version": levy.charge.rule_version,
    }


def _read_line(index: int, item: dict[str, Any], currency: str, at: datetime) -> TaxableLine:
    pointer, quantity = f"/items/{index}", int(item["quantity"])
    product = catalog.find_product(item["sku"]) if "sku" in item else None
    hs_code = item.get("hs_code") or (product.hs_code if product else None)
    origin = item.get("country_of_origin") or (product.origin if product else None)
    if hs_code is None or origin is None:
        raise runtime.InvalidArgument("Goods without a SKU need `hs_code` and `country_of_origin`.", pointer=pointer)
    if "unit_value" in item:
        value = money.parse(item["unit_value"], currency, pointer=f"{pointer}/unit_value") * quantity
    elif product is not None:
        value = price_line(product.sku, quantity, currency, at).total
    else:
        raise runtime.InvalidArgument("Goods without a SKU need `unit_value`.", pointer=f"{pointer}/unit_value")
    return TaxableLine(item.get("sku", hs_code), hs_code, origin, value)


def _check_destination(destination: dict[str, Any]) -> tuple[str, str]:
    """Country and state; a state is needed where rates differ by state."""
    country, state = str(destination["country"]), str(destination.get("state") or "")
    entry = addresses.check_country(country)
    if entry.get("states") and state not in entry["states"]:
        raise runtime.AddressInvalid(
            "The state or province is needed here; use the short code.",
            field="destination.state", pointer="/destination/state", allowed=entry["states"],
        )  # fmt: skip
    return country, state


def estimate_duties_and_taxes(
    destination: dict[str, Any],
    items: list[dict[str, Any]],
    shipping_cost: str = "0",
    insurance_cost: str = "0",
    currency: str | None = None,
    incoterm: str = "DDP",
    ship_from: str | None = None,
) -> dict[str, Any]:
    """Itemised duties, taxes and fees, each with the rule it rests on."""
    call = runtime.current_call()
    tables.cite("ruleset", tables.TAX_RULES)
    tables.cite("exchange_rates", tables.EXCHANGE_RATES)
    tables.cite("price_list", tables.PRICE_LIST)
    chosen = money.check_currency(currency)
    country, state = _check_destination(destination)
    lines = [_read_line(index, item, chosen, call.started_at) for index, item in enumerate(items)]
    carriage = money.parse(shipping_cost, chosen, pointer="/shipping_cost") + money.parse(
        insurance_cost, chosen, pointer="/insurance_cost"
    )
    if ship_from is None:
        runtime.warn("`ship_from` was not given: the goods are taken to be imported from abroad.")
    result = estimate(
        country=country, state=state, ship_from=ship_from, lines=lines, carriage=carriage, currency=chosen,
        incoterm=incoterm, at=call.started_at,
    )  # fmt: skip
    if result.local_currency != chosen:
        runtime.warn(f"Assessed in {result.local_currency} and converted; the authorities use their own rate.")
    runtime.set_ttl(TTL_SECONDS)
    goods_value = sum((line.value for line in lines), money.ZERO)
    return {
        "currency": chosen,
        "incoterm": incoterm,
        "destination": {"country": country, "state": state or None},
        "ship_from": ship_from,
        "goods_value": money.show(goods_value, chosen),
        "carriage": money.show(carriage, chosen),
        "lines": [
            {"line": index, "label": line.label, "hs_code": line.hs_code, "country_of_origin": line.origin,
             "value": money.show(line.value, chosen)}
            for index, line in enumerate(lines)
        ],
        "charges": [levy_to_json(levy, chosen) for levy in result.levies],
        "special_rules": list(result.applied),
        "totals": {
            "duties": money.show(result.duties, chosen),
            "taxes": money.show(result.taxes, chosen),
            "fees": money.show(result.fees, chosen),
            "total": money.show(result.total(), chosen),
            "at_checkout": money.show(result.total(collected="checkout"), chosen),
            "on_delivery": money.show(result.total(collected="delivery"), chosen),
        },
        "ruleset_version": tables.version(tables.TAX_RULES),
        "estimated_at": tables.timestamp(call.started_at),
        "disclaimer": "An estimate from demonstration data; the customs authority decides.",
    }  # fmt: skip
