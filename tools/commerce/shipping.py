"""Shipping: the services that carry goods to an address, at which price, and when they arrive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any

from commerce import addresses, catalog, money, tables
from unitools import runtime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from commerce.addresses import Address
    from commerce.catalog import Product, Warehouse


@dataclass(frozen=True, slots=True)
class Parcel:
    """What the carrier is handed: everything packed into one parcel."""

    weight_g: int
    volume_cm3: Decimal
    longest_mm: int
    lithium: frozenset[str]
    dangerous_goods: bool

    def chargeable_g(self, divisor: int | None) -> int:
        """Weight or volumetric weight, whichever is more; ``divisor`` is in cm³ per kg."""
        if divisor is None:
            return self.weight_g
        volumetric = (self.volume_cm3 * 1000 / divisor).to_integral_value(rounding=ROUND_CEILING)
        return max(self.weight_g, int(volumetric))


@dataclass(frozen=True, slots=True)
class Option:
    """One way to ship: ``base + fuel + remote`` is ``price``, exactly, each rounded in the asked currency."""

    id: str
    carrier: str
    service: str
    tracked: bool
    warehouse: Warehouse
    chargeable_g: int
    base: Decimal
    fuel: Decimal
    remote: Decimal
    transit_days: tuple[int, int]
    hand_over_by: datetime
    arrives: tuple[date, date]

    @property
    def price(self) -> Decimal:
        return self.base + self.fuel + self.remote


def pack(wanted: Sequence[tuple[Product, int]]) -> Parcel:
    table = tables.read(tables.CARRIERS)
    goods_g = sum(product.weight_g * quantity for product, quantity in wanted)
    packaging_g = max(int(table["packaging_min_g"]), int(goods_g * Decimal(table["packaging_percent"]) / 100))
    goods_cm3 = sum((product.volume_cm3 * quantity for product, quantity in wanted), money.ZERO)
    attributes = [product.attributes for product, _ in wanted]
    return Parcel(
        weight_g=goods_g + packaging_g,
        volume_cm3=goods_cm3 * (100 + Decimal(table["fill_percent"])) / 100,
        longest_mm=max(max(product.size_mm) for product, _ in wanted),
        lithium=frozenset(a["lithium_packing"] for a in attributes if "lithium_packing" in a),
        dangerous_goods=any("dangerous_goods" in a for a in attributes),
    )


def weight_price(zone: dict[str, Any], weight_g: int) -> Decimal:
    """The price for a weight: the first bracket that holds it, above the last one so much for each step begun."""
    for up_to_g, price in zone["brackets"]:
        if weight_g <= up_to_g:
            return Decimal(price)
    last_g, last_price = zone["brackets"][-1]
    steps = -((int(last_g) - weight_g) // int(zone["step_g"]))
    return Decimal(last_price) + steps * Decimal(zone["step_price"])


def _working_days_after(start: date, days: int) -> date:
    day = start
    while days > 0 or day.weekday() >= 5:
        day += timedelta(days=1)
        if day.weekday() < 5:
            days -= 1
    return day


def _next_hand_over(cut_off: str, house: Warehouse, at: datetime) -> datetime:
    """The next cut-off of a working day in the warehouse's own time."""
    offset = timedelta(minutes=house.utc_offset_minutes)
    local = at + offset
    deadline = datetime.combine(local.date(), time.fromisoformat(cut_off), tzinfo=at.tzinfo)
    if local >= deadline:
        deadline += timedelta(days=1)
    while deadline.weekday() >= 5:
        deadline += timedelta(days=1)
    return deadline - offset


def _unsuitable(service: dict[str, Any], parcel: Parcel) -> str | None:
    """Why a service does not take the parcel, or None."""
    chargeable_g = parcel.chargeable_g(service["volumetric_divisor"])
    if chargeable_g > service["max_weight_g"]:
        return f"The chargeable weight of {chargeable_g} g is over the service's {service['max_weight_g']} g."
    if parcel.longest_mm > service["max_side_mm"]:
        return f"The longest side of {parcel.longest_mm} mm is over the service's {service['max_side_mm']} mm."
    if parcel.lithium - set(service["lithium"]):
        return "The service does not carry lithium batteries that are packed like this."
    if parcel.dangerous_goods and not service["dangerous_goods"]:
        return "The service does not carry dangerous goods."
    return None


def _is_remote(address: Address) -> bool:
    starts = tables.read(tables.CARRIERS)["remote_postal_starts"].get(address.country, [])
    return address.postal_code.startswith(tuple(starts))


def _services(house: Warehouse, country: str) -> Iterator[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Carrier, service and zone for each service that runs from the warehouse to the country."""
    for carrier in tables.read(tables.CARRIERS)["carriers"]:
        for service in carrier["services"]:
            for zone in service["zones"]:
                if house.id in zone["from"] and country in zone["to"]:
                    yield carrier, service, zone
                    break


def find_options(
    wanted: Sequence[tuple[Product, int]], address: Address, currency: str, at: datetime
) -> tuple[list[Option], list[dict[str, str]]]:
    """All suitable options, cheapest first, and the services that do not take the goods, each with its reason."""
    region = addresses.countries_in(address.region)
    house, holds_all = catalog.choose_warehouse(list(wanted), address.country, region)
    if not holds_all:
        runtime.warn(f"No single warehouse holds everything; the goods are first brought together in {house.id}.")
    parcel = pack(wanted)
    options, excluded = [], []
    for carrier, service, zone in _services(house, address.country):
        option_id = f"{carrier['id']}.{service['id']}.{house.id}"
        if reason := _unsuitable(service, parcel):
            excluded.append({"id": option_id, "reason": reason})
            continue
        chargeable_g = parcel.chargeable_g(service["volumetric_divisor"])
        net = weight_price(zone, chargeable_g)
        remote = Decimal(service["remote_surcharge"]) if _is_remote(address) else money.ZERO
        hand_over_by = _next_hand_over(service["cut_off"], house, at)
        handed_over = (hand_over_by + timedelta(minutes=house.utc_offset_minutes)).date()
        soonest, latest = zone["transit_days"]
        options.append(
            Option(
                id=option_id,
                carrier=carrier["name"],
                service=service["name"],
                tracked=service["tracked"],
                warehouse=house,
                chargeable_g=chargeable_g,
                base=money.convert(net, carrier["currency"], currency),
                fuel=money.convert(net * Decimal(carrier["fuel_percent"]) / 100, carrier["currency"], currency),
                remote=money.convert(remote, carrier["currency"], currency),
                transit_days=(soonest, latest),
                hand_over_by=hand_over_by,
                arrives=(
                    _working_days_after(handed_over, soonest),
                    _working_days_after(handed_over, latest),
                ),
            )
        )
    return sorted(options, key=lambda option: (option.price, option.arrives, option.id)), excluded


def read_items(items: Iterable[dict[str, Any]], *, pointer: str) -> list[tuple[Product, int]]:
    """The products that are named, each once."""
    wanted: dict[str, tuple[Product, int]] = {}
    for index, item in enumerate(items):
        if item["sku"] in wanted:
            raise runtime.InvalidArgument(
                f"{item['sku']} is named twice; add the quantities up.", pointer=f"{pointer}/{index}/sku"
            )
        wanted[item["sku"]] = (catalog.find_product(item["sku"]), int(item["quantity"]))
    return list(wanted.values())


def option_to_json(option: Option, currency: str) -> dict[str, Any]:
    return {
        "id": option.id,
        "carrier": option.carrier,
        "service": option.service,
        "tracked": option.tracked,
        "ship_from": {"warehouse": option.warehouse.id, "country": option.warehouse.country},
        "chargeable_weight_g": option.chargeable_g,
        "price": money.show(option.price, currency),
        "components": [
            {"kind": "freight", "amount": money.show(option.base, currency)},
            {"kind": "fuel_surcharge", "amount": money.show(option.fuel, currency)},
            {"kind": "remote_area", "amount": money.show(option.remote, currency)},
        ],
        "transit_working_days": {"min": option.transit_days[0], "max": option.transit_days[1]},
        "hand_over_by": tables.timestamp(option.hand_over_by),
        "arrives": {"earliest": option.arrives[0].isoformat(), "latest": option.arrives[1].isoformat()},
    }


def freshness_seconds(options: Sequence[Option], at: datetime) -> int:
    """How long the dates hold: until the table's limit or the next cut-off, whichever comes first."""
    limit = int(tables.read(tables.CARRIERS)["quote_ttl_seconds"])
    return min([limit, *(max(0, int((option.hand_over_by - at).total_seconds())) for option in options)])


def quote_options(
    destination: dict[str, Any], items: list[dict[str, Any]], currency: str | None = None
) -> dict[str, Any]:
    """Shipping options for the items, cheapest first."""
    call = runtime.current_call()
    tables.cite("rate_table", tables.CARRIERS)
    tables.cite("ruleset", tables.ADDRESSES)
    tables.cite("price_list", tables.PRICE_LIST)
    tables.cite("stock", tables.STOCK)
    tables.cite("exchange_rates", tables.EXCHANGE_RATES)
    chosen = money.check_currency(currency)
    address = addresses.check_address(destination)
    wanted = read_items(items, pointer="/items")
    options, excluded = find_options(wanted, address, chosen, call.started_at)
    ttl = freshness_seconds(options, call.started_at)
    runtime.set_ttl(ttl)
    if not options:
        runtime.warn("No service carries these goods to this address; see `excluded` for the reasons.")
    if _is_remote(address):
        runtime.warn("The address is in a remote area: carriers add a surcharge.")
    parcel = pack(wanted)
    return {
        "currency": chosen,
        "destination": address.area(),
        "parcel": {"weight_g": parcel.weight_g, "volume_cm3": int(parcel.volume_cm3.to_integral_value()),
                   "longest_side_mm": parcel.longest_mm},
        "options": [option_to_json(option, chosen) for option in options],
        "excluded": excluded,
        "rate_table_version": tables.version(tables.CARRIERS),
        "quoted_at": tables.timestamp(call.started_at),
        "valid_until": tables.timestamp(call.started_at + timedelta(seconds=ttl)),
    }  # fmt: skip
