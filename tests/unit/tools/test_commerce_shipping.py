"""Commerce shipping: are the shipping options right, and is a bad address refused without repeating it?"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commerce import addresses, catalog, shipping, tables
from unitools import runtime

if TYPE_CHECKING:
    from tests.unit.tools.conftest import Ask

OPTIONS = "commerce.shipping.quote_options"
BERLIN = {"country": "DE", "postal_code": "10115", "city": "Berlin"}
GOOD = {
    "US": ("94105", "CA"), "CA": ("K1A 0B1", "ON"), "MX": ("06600", ""), "GB": ("SW1A 1AA", ""), "DE": ("10115", ""),
    "FR": ("75001", ""), "NL": ("1012 AB", ""), "ES": ("28001", ""), "IT": ("00118", ""), "BE": ("1000", ""),
    "AT": ("1010", ""), "IE": ("D02 AF30", ""), "SE": ("111 20", ""), "PL": ("00-001", ""), "CH": ("8001", ""),
    "AU": ("2000", "NSW"), "NZ": ("6011", ""), "JP": ("100-0001", ""), "CN": ("100000", ""), "KR": ("04524", ""),
    "SG": ("018956", ""), "HK": ("", ""), "BR": ("01310-100", "SP"), "AE": ("", ""),
}  # fmt: skip
ZONES = [
    zone
    for carrier in tables.read(tables.CARRIERS)["carriers"]
    for service in carrier["services"]
    for zone in service["zones"]
]


def _items(*skus: str, quantity: int = 1) -> list[dict[str, Any]]:
    return [{"sku": sku, "quantity": quantity} for sku in skus]


@given(zone=st.sampled_from(ZONES), grams=st.integers(1, 300_000), more=st.integers(0, 300_000))
def test_a_heavier_parcel_never_costs_less(zone: dict[str, Any], grams: int, more: int) -> None:
    assert shipping.weight_price(zone, grams + more) >= shipping.weight_price(zone, grams)


@given(
    sku=st.sampled_from(sorted(catalog.products())),
    quantities=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    country=st.sampled_from(sorted(GOOD)),
)
def test_more_of_the_same_from_the_same_place_never_ships_for_less(
    ask: Ask, sku: str, quantities: tuple[int, int], country: str
) -> None:
    postal_code, state = GOOD[country]
    destination = {"country": country, "postal_code": postal_code, "state": state, "city": "X"}
    prices = [
        {
            option["id"]: Decimal(option["price"])
            for option in ask(OPTIONS, {"destination": destination, "items": _items(sku, quantity=n)}).value["options"]
        }
        for n in sorted(quantities)
    ]

    assert all(prices[1][id] >= prices[0][id] for id in prices[0].keys() & prices[1].keys())


def test_options_come_cheapest_first_and_their_components_add_up(ask: Ask) -> None:
    options = ask(OPTIONS, {"destination": BERLIN, "items": _items("HEADPHONES-ANC"), "currency": "EUR"}).value[
        "options"
    ]

    assert len(options) >= 3
    assert [option["price"] for option in options] == sorted((o["price"] for o in options), key=Decimal)
    for option in options:
        assert sum(Decimal(part["amount"]) for part in option["components"]) == Decimal(option["price"])
        assert option["arrives"]["earliest"] <= option["arrives"]["latest"]


def test_the_warehouse_in_the_country_ships_when_it_holds_everything(ask: Ask) -> None:
    destination = {"country": "US", "postal_code": "94105", "state": "CA"}

    near = ask(OPTIONS, {"destination": destination, "items": _items("HEADPHONES-ANC")})
    far = ask(OPTIONS, {"destination": destination, "items": _items("CHEESE-AGED")})
    nowhere = ask(OPTIONS, {"destination": destination, "items": _items("HEADPHONES-ANC", quantity=500)})

    assert {option["ship_from"]["warehouse"] for option in near.value["options"]} == {"US1"}
    assert {option["ship_from"]["warehouse"] for option in far.value["options"]} == {"NL1"}
    assert any("brought together" in warning for warning in nowhere.report.warnings)


def test_light_but_bulky_goods_are_charged_by_volume(ask: Ask) -> None:
    value = ask(OPTIONS, {"destination": BERLIN, "items": _items("PILLOW-LATEX")}).value
    express = next(option for option in value["options"] if option["id"].startswith("swiftwing.express"))

    assert express["chargeable_weight_g"] > value["parcel"]["weight_g"]


def test_services_that_do_not_take_the_goods_are_named_with_the_reason(ask: Ask) -> None:
    value = ask(OPTIONS, {"destination": BERLIN, "items": _items("POWERBANK-20K")}).value

    reasons = {entry["id"]: entry["reason"] for entry in value["excluded"]}
    assert "lithium" in reasons["swiftwing.express.NL1"]
    assert "eurolane.standard.NL1" in {option["id"] for option in value["options"]}
    heavy = ask(OPTIONS, {"destination": BERLIN, "items": _items("DUMBBELL-10", quantity=40)})
    assert heavy.value["options"] == []
    assert any("No service carries" in warning for warning in heavy.report.warnings)


def test_a_remote_area_costs_a_surcharge(ask: Ask) -> None:
    hawaii = {"country": "US", "postal_code": "96701-1234", "state": "HI"}
    oahu = {"country": "US", "postal_code": "96801", "state": "HI"}

    remote = ask(OPTIONS, {"destination": oahu, "items": _items("LAMP-DESK")})
    near = ask(
        OPTIONS, {"destination": {**hawaii, "postal_code": "94105", "state": "CA"}, "items": _items("LAMP-DESK")}
    )

    surcharges = [
        {part["kind"]: part["amount"] for part in answer.value["options"][-1]["components"]}["remote_area"]
        for answer in (remote, near)
    ]
    assert Decimal(surcharges[0]) > 0
    assert Decimal(surcharges[1]) == 0


@pytest.mark.req("SPEC-5")
def test_the_answer_is_fresh_until_the_next_cut_off_at_most(ask: Ask) -> None:
    arguments = {"destination": BERLIN, "items": _items("HEADPHONES-ANC")}

    assert ask(OPTIONS, arguments).report.ttl_seconds == 900
    just_before = datetime(2026, 11, 18, 10, 55, tzinfo=UTC)  # the economy service closes at 12:00 in the Netherlands
    assert ask(OPTIONS, arguments, started_at=just_before).report.ttl_seconds == 300


@pytest.mark.parametrize(
    ("at", "earliest"),
    [
        (datetime(2026, 11, 18, 10, 0, tzinfo=UTC), date(2026, 11, 20)),  # Wednesday, before the cut-off: two days
        (datetime(2026, 11, 18, 17, 0, tzinfo=UTC), date(2026, 11, 23)),  # after it: Thursday, two working days
        (datetime(2026, 11, 21, 10, 0, tzinfo=UTC), date(2026, 11, 25)),  # Saturday: handed over on Monday
    ],
)
def test_days_of_arrival_count_cut_off_and_weekends(ask: Ask, at: datetime, earliest: date) -> None:
    value = ask(OPTIONS, {"destination": BERLIN, "items": _items("HEADPHONES-ANC")}, started_at=at).value
    road = next(option for option in value["options"] if option["id"] == "eurolane.standard.NL1")

    assert road["arrives"]["earliest"] == earliest.isoformat()


@pytest.mark.parametrize("country", sorted(GOOD))
def test_a_good_address_of_each_country_is_taken_in_any_spelling(country: str, ask: Ask) -> None:
    postal_code, state = GOOD[country]
    destination = {"country": country, "postal_code": postal_code.lower(), "state": state.lower(), "city": " X  Y "}

    assert set(GOOD) == set(tables.read(tables.ADDRESSES)["countries"])
    area = ask(OPTIONS, {"destination": destination, "items": _items("USBC-CABLE-2M")}).value["destination"]
    assert area == {
        "country": country, "state": state or None, "city": "X Y", "postal_code": postal_code or None,
    }  # fmt: skip


@pytest.mark.req("SPEC-6", "SPEC-10")
@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"country": "AQ"}, "destination.country"),
        ({"postal_code": "SECRET-77"}, "destination.postal_code"),
        ({"postal_code": ""}, "destination.postal_code"),
        ({"country": "US", "state": "QQ"}, "destination.state"),
        ({"country": "US", "state": ""}, "destination.state"),
        ({"country": "US", "state": "NY", "postal_code": "94105"}, "destination.postal_code"),
    ],
)
def test_a_bad_address_names_the_field_and_never_the_value(ask: Ask, change: dict[str, str], field: str) -> None:
    destination = {**BERLIN, "city": "Geheimstadt", "line1": "Geheimweg 7", "recipient": "Geheim", **change}

    with pytest.raises(runtime.AddressInvalid) as refusal:
        ask(OPTIONS, {"destination": destination, "items": _items("LAMP-DESK")})

    said = refusal.value.message + json.dumps({k: v for k, v in refusal.value.details.items() if k != "allowed"})
    assert refusal.value.details["field"] == field
    assert not any(secret in said for secret in ("SECRET", "Geheim", "94105", "QQ"))


def test_every_postal_code_that_must_belong_to_a_state_begins_like_one() -> None:
    for entry in tables.read(tables.ADDRESSES)["countries"].values():
        named = {state for states in entry.get("states_by_postal_start", {}).values() for state in states}
        if named:
            assert named == set(entry["states"])


@pytest.mark.req("SPEC-6")
def test_a_sku_that_is_named_twice_is_refused(ask: Ask) -> None:
    with pytest.raises(runtime.InvalidArgument, match="named twice"):
        ask(OPTIONS, {"destination": BERLIN, "items": _items("LAMP-DESK", "LAMP-DESK")})


def test_regions_are_not_empty() -> None:
    assert "NL" in addresses.countries_in("EUROPE")
