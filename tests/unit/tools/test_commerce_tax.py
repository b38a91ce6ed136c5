"""Commerce tax: are duties and taxes those of the rules in force, and does every amount name its rule?"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commerce import catalog, tables, taxation
from unitools import runtime

if TYPE_CHECKING:
    from tests.unit.tools.conftest import Ask

ESTIMATE = "commerce.tax.estimate_duties_and_taxes"
STATES = {"US": "CA", "CA": "ON", "AU": "NSW", "BR": "SP"}
COUNTRIES = sorted(tables.read(tables.TAX_RULES)["countries"])


def _goods(value: str, *, hs: str = "851830", origin: str = "CN", quantity: int = 1) -> list[dict[str, Any]]:
    return [{"hs_code": hs, "country_of_origin": origin, "quantity": quantity, "unit_value": value}]


def _to(country: str) -> dict[str, str]:
    return {"country": country, "state": STATES[country]} if country in STATES else {"country": country}


def _rules(value: dict[str, Any], kind: str) -> list[tuple[str, str]]:
    return [(charge["rule_id"], charge["amount"]) for charge in value["charges"] if charge["kind"] == kind]


@given(
    country=st.sampled_from(COUNTRIES),
    skus=st.lists(st.sampled_from(sorted(catalog.products())), min_size=1, max_size=4),
    values=st.lists(st.integers(1, 500_000), min_size=4, max_size=4),
    shipping=st.integers(0, 20_000),
    currency=st.sampled_from(["USD", "EUR", "CNY", "KWD"]),
    incoterm=st.sampled_from(["DDP", "DAP"]),
    ship_from=st.sampled_from(["CN", "US", "NL", None]),
)
def test_the_totals_are_the_sums_of_the_itemised_charges(
    ask: Ask, country: str, skus: list[str], values: list[int], shipping: int, currency: str, incoterm: str,
    ship_from: str | None,
) -> None:  # fmt: skip
    items = [
        {"sku": sku, "quantity": 1, "unit_value": f"{cents / 100:.2f}"}
        for sku, cents in zip(skus, values, strict=False)
    ]
    arguments: dict[str, Any] = {
        "destination": _to(country), "items": items, "shipping_cost": f"{shipping / 100:.2f}", "currency": currency,
        "incoterm": incoterm,
    }  # fmt: skip
    value = ask(ESTIMATE, arguments | ({"ship_from": ship_from} if ship_from else {})).value
    totals = {name: Decimal(amount) for name, amount in value["totals"].items()}

    assert totals["total"] == sum((Decimal(c["amount"]) for c in value["charges"]), Decimal(0))
    assert totals["total"] == totals["duties"] + totals["taxes"] + totals["fees"]
    assert totals["total"] == totals["at_checkout"] + totals["on_delivery"]
    assert min(totals.values()) >= 0
    if incoterm == "DDP":
        assert totals["on_delivery"] == 0


@pytest.mark.req("SPEC-7", "SPEC-8")
@pytest.mark.parametrize("country", COUNTRIES)
def test_every_charge_names_a_rule_of_the_country_and_its_version(ask: Ask, country: str) -> None:
    table = tables.read(tables.TAX_RULES)
    entry = table["countries"][country]
    entry = {**table["shared"].get(entry.get("inherits"), {}), **entry}
    known = {(rule["id"], rule["version"]) for rules in entry.values() if isinstance(rules, list) for rule in rules}

    value = ask(ESTIMATE, {"destination": _to(country), "items": _goods("2500.00"), "ship_from": "CN"}).value

    assert {(charge["rule_id"], charge["rule_version"]) for charge in value["charges"]} <= known
    assert value["ruleset_version"] == table["version"]


def test_ceramics_from_china_to_germany_bear_tariff_anti_dumping_duty_and_vat(ask: Ask) -> None:
    goods = _goods("500.00", hs="691200")

    value = ask(
        ESTIMATE,
        {"destination": _to("DE"), "items": goods, "shipping_cost": "50.00", "currency": "EUR", "ship_from": "CN"},
    ).value

    assert _rules(value, "duty") == [("EU-TARIC-6911-12", "49.50"), ("EU-AD-691-CN", "198.55")]
    assert _rules(value, "vat") == [("DE-VAT", "151.63")]  # 19 % of 550.00 + 49.50 + 198.55


def test_a_reduced_rate_applies_to_books_by_their_hs_code(ask: Ask) -> None:
    value = ask(
        ESTIMATE,
        {"destination": _to("DE"), "items": _goods("10.00", hs="490199"), "currency": "EUR", "ship_from": "NL"},
    )

    assert _rules(value.value, "vat") == [("DE-VAT-R1", "0.70")]


def test_goods_inside_the_customs_union_bear_no_duty(ask: Ask) -> None:
    value = ask(
        ESTIMATE,
        {"destination": _to("DE"), "items": _goods("900.00"), "currency": "EUR", "ship_from": "NL", "incoterm": "DAP"},
    ).value

    assert _rules(value, "duty") == []
    assert value["totals"]["on_delivery"] == "0.00"
    assert value["totals"]["taxes"] == "171.00"


@pytest.mark.parametrize(
    ("day", "rule", "duty"),
    [
        (datetime(2026, 6, 30, 12, tzinfo=UTC), "EU-LOWVALUE-150", "0.00"),
        (datetime(2026, 7, 1, 12, tzinfo=UTC), "EU-LOWVALUE-FLAT-3", "3.00"),
    ],
)
def test_the_rule_in_force_on_the_day_of_the_call_decides(ask: Ask, day: datetime, rule: str, duty: str) -> None:
    goods = _goods("100.00", hs="691200")

    value = ask(
        ESTIMATE, {"destination": _to("FR"), "items": goods, "currency": "EUR", "ship_from": "CN"}, started_at=day
    ).value

    assert _rules(value, "duty") == [(rule, duty)]
    assert rule in {entry["id"] for entry in value["special_rules"]}


def test_the_united_states_exempted_small_parcels_until_august_2025(ask: Ask) -> None:
    arguments = {"destination": _to("US"), "items": _goods("700.00"), "currency": "USD", "ship_from": "CN"}

    before = ask(ESTIMATE, arguments, started_at=datetime(2025, 8, 28, tzinfo=UTC)).value
    after = ask(ESTIMATE, arguments, started_at=datetime(2025, 8, 29, tzinfo=UTC)).value

    assert before["totals"]["duties"] == "0.00"
    assert _rules(after, "duty") == [("US-HTS-84-85", "0.00"), ("US-ADD-CN-L1", "175.00")]
    assert _rules(after, "fee") == [("US-MPF-INFORMAL", "2.62")]


@pytest.mark.parametrize(("value", "duties", "taxes"), [("5000.00", "0.00", "455.00"), ("5000.01", "0.00", "650.00")])
def test_the_cross_border_channel_ends_above_five_thousand_yuan(ask: Ask, value: str, duties: str, taxes: str) -> None:
    answer = ask(ESTIMATE, {"destination": _to("CN"), "items": _goods(value), "currency": "CNY", "ship_from": "NL"})

    assert (answer.value["totals"]["duties"], answer.value["totals"]["taxes"]) == (duties, taxes)
    assert (value == "5000.00") == any("26000" in warning for warning in answer.report.warnings)


def test_a_fixed_deduction_never_turns_a_duty_into_a_refund(monkeypatch: pytest.MonkeyPatch) -> None:
    regime = {"id": "R", "version": "1", "name": "Regime", "max_goods": "100", "duty_rate": "0.1", "duty_credit": "20"}
    rules = {"currency": "USD", "valuation": "FOB", "regimes": [regime]}
    monkeypatch.setattr(taxation, "rules_of", lambda _country: rules)
    goods = [taxation.Goods("851830", "CN", Decimal(value), Decimal(0)) for value in ("30.00", "50.00")]

    assessment = taxation.Assessor("BR", "", datetime(2026, 11, 18, tzinfo=UTC)).assess(goods, imported=True)

    assert [sum(charge.amount for charge in charges) for charges in assessment.lines] == [0, 0]


def test_the_brazilian_deduction_is_taken_off_before_the_tax_is_reckoned(ask: Ask) -> None:
    value = ask(
        ESTIMATE,
        {
            "destination": _to("BR"),
            "items": _goods("149.00"),
            "shipping_cost": "20.00",
            "currency": "USD",
            "ship_from": "CN",
        },
    ).value

    assert _rules(value, "duty") == [("BR-REMESSA-3000", "101.40"), ("BR-REMESSA-3000", "-20.00")]
    assert _rules(value, "vat") == [("BR-ICMS", "51.29")]  # 17 % of its own base: (169.00 + 81.40) / 0.83


def test_a_swiss_tax_below_five_francs_is_not_collected(ask: Ask) -> None:
    small = ask(
        ESTIMATE, {"destination": _to("CH"), "items": _goods("60.00"), "currency": "CHF", "ship_from": "CN"}
    ).value
    large = ask(
        ESTIMATE, {"destination": _to("CH"), "items": _goods("62.00"), "currency": "CHF", "ship_from": "CN"}
    ).value

    assert small["totals"]["taxes"] == "0.00"
    assert large["totals"]["taxes"] == "5.02"


def test_waiving_a_small_tax_leaves_no_rounding_behind_in_another_currency(ask: Ask) -> None:
    two_bags = [{"hs_code": "420292", "country_of_origin": "VN", "quantity": 1, "unit_value": "1.66"} for _ in range(2)]

    value = ask(
        ESTIMATE,
        {"destination": _to("CH"), "items": two_bags, "shipping_cost": "0.54", "currency": "USD", "ship_from": "CN"},
    ).value

    assert _rules(value, "vat") == [("CH-VAT-5", "0.00"), ("CH-VAT-5", "0.00")]
    assert value["totals"]["total"] == "0.00"


def test_under_dap_the_seller_still_collects_tax_on_low_value_goods(ask: Ask) -> None:
    low, high = (
        ask(
            ESTIMATE,
            {"destination": _to("GB"), "items": _goods(v), "currency": "GBP", "ship_from": "CN", "incoterm": "DAP"},
        ).value["totals"]
        for v in ("100.00", "200.00")
    )

    assert (low["at_checkout"], low["on_delivery"]) == ("20.00", "0.00")
    assert (high["at_checkout"], high["on_delivery"]) == ("0.00", "40.00")


def test_a_duty_free_origin_wins_over_the_general_tariff(ask: Ask) -> None:
    def duties(origin: str) -> str:
        goods = _goods("900.00", hs="610910", origin=origin)
        value = ask(ESTIMATE, {"destination": _to("CA"), "items": goods, "currency": "CAD", "ship_from": "CN"}).value
        return str(value["totals"]["duties"])

    assert (duties("MX"), duties("BD")) == ("0.00", "162.00")


def test_parallel_taxes_are_not_charged_on_one_another(ask: Ask) -> None:
    value = ask(
        ESTIMATE, {"destination": _to("CA"), "items": _goods("100.00"), "currency": "CAD", "ship_from": "CA"}
    ).value

    assert _rules(value, "gst") == [("CA-GST", "5.00")]
    assert _rules(value, "sales_tax") == [("CA-PST", "8.00")]


def test_a_sku_is_valued_at_today_s_price_and_origin(ask: Ask) -> None:
    value = ask(
        ESTIMATE,
        {
            "destination": _to("DE"),
            "items": [{"sku": "LAPTOP-14", "quantity": 2}],
            "currency": "EUR",
            "ship_from": "CN",
        },
    ).value

    assert value["lines"] == [
        {"line": 0, "label": "LAPTOP-14", "hs_code": "847130", "country_of_origin": "CN", "value": "1898.00"}
    ]


@pytest.mark.req("SPEC-5")
def test_an_estimate_says_what_it_leaves_out(ask: Ask) -> None:
    answer = ask(
        ESTIMATE, {"destination": _to("GB"), "items": [{"sku": "WHISKY-700", "quantity": 1}], "currency": "USD"}
    )

    assert answer.report.ttl_seconds == 86_400
    assert any("Excise" in warning for warning in answer.report.warnings)
    assert any("ship_from" in warning for warning in answer.report.warnings)
    assert any("Assessed in GBP" in warning for warning in answer.report.warnings)


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize("destination", [{"country": "US"}, {"country": "US", "state": "QQ"}, {"country": "AQ"}])
def test_a_destination_that_cannot_be_assessed_is_refused(ask: Ask, destination: dict[str, str]) -> None:
    with pytest.raises(runtime.AddressInvalid):
        ask(ESTIMATE, {"destination": destination, "items": _goods("10.00")})


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize(
    "item", [{"hs_code": "851830", "quantity": 1}, {"hs_code": "851830", "country_of_origin": "CN", "quantity": 1}]
)
def test_goods_without_a_sku_are_described_in_full(item: dict[str, Any]) -> None:
    """The input schema asks for it already; the function says the same to those who call it directly."""
    from commerce import tax

    with runtime.running(runtime.Call()), pytest.raises(runtime.InvalidArgument):
        tax.estimate_duties_and_taxes(destination={"country": "DE"}, items=[item])
