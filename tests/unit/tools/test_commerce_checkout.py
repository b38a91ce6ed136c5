"""Commerce checkout: is the total of an order the sum of its parts, and does a draft check everything before it exists?"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commerce import catalog
from unitools import runtime

if TYPE_CHECKING:
    from tests.unit.tools.conftest import Ask

TOTAL = "commerce.checkout.compute_total"
DRAFT = "commerce.checkout.create_draft_order"
SAN_FRANCISCO = {"country": "US", "postal_code": "94105", "state": "CA", "city": "San Francisco"}
BERLIN = {"country": "DE", "postal_code": "10115", "city": "Berlin"}
LONDON = {"country": "GB", "postal_code": "SW1A 1AA", "city": "London"}
TORONTO = {"country": "CA", "postal_code": "M5V 2T6", "state": "ON", "city": "Toronto"}
BUYER = {"recipient": "Ada Geheim", "line1": "1 Geheim Street"}
DESK = [{"sku": "KEYBOARD-MX", "quantity": 1}, {"sku": "MOUSE-ERGO", "quantity": 1}]
ORDER_DESTINATION = {**SAN_FRANCISCO, **BUYER}
ORDER: dict[str, Any] = {
    "lines": DESK, "destination": ORDER_DESTINATION, "shipping_option_id": "northfreight.ground.US1",
    "currency": "USD", "expected_total": "195.61",
}  # fmt: skip


def _components(value: dict[str, Any]) -> dict[str, Decimal]:
    return {part["kind"]: Decimal(part["amount"]) for part in value["components"]}


@given(
    skus=st.lists(st.sampled_from(sorted(catalog.products())), min_size=1, max_size=5, unique=True),
    quantity=st.integers(1, 3),
    destination=st.sampled_from([SAN_FRANCISCO, BERLIN, LONDON, TORONTO]),
    currency=st.sampled_from(["USD", "EUR", "JPY", "KWD"]),
    coupon=st.sampled_from([None, "WELCOME10", "SHIPFREE", "HOME15"]),
    incoterm=st.sampled_from(["DDP", "DAP"]),
)
def test_the_total_is_the_sum_of_its_components_and_they_of_theirs(
    ask: Ask, skus: list[str], quantity: int, destination: dict[str, str], currency: str, coupon: str | None,
    incoterm: str,
) -> None:  # fmt: skip
    arguments: dict[str, Any] = {
        "lines": [{"sku": sku, "quantity": quantity} for sku in skus], "destination": destination,
        "currency": currency, "incoterm": incoterm,
    }  # fmt: skip
    try:
        value = ask(TOTAL, arguments | ({"coupon_code": coupon} if coupon else {})).value
    except runtime.DomainError as error:
        assert error.code in {"COMPLIANCE_BLOCKED", "OUT_OF_STOCK", "CONFLICT", "INVALID_ARGUMENT"}
        assume(False)

    parts = _components(value)
    assert sum(parts.values()) == Decimal(value["total"])
    assert sum(Decimal(line["total"]) for line in value["lines"]) == parts["goods"]
    assert sum(Decimal(line["coupon_discount"]) for line in value["lines"]) == -parts["coupon"]
    assert Decimal(value["shipping"]["price"]) == parts["shipping"]
    assert Decimal(value["total"]) + Decimal(value["on_delivery"]) == Decimal(value["landed_total"])
    charges = sum(Decimal(charge["amount"]) for charge in value["charges"])
    assert charges == parts["duties"] + parts["taxes"] + parts["fees"] + Decimal(value["on_delivery"])


def test_a_cart_is_priced_with_the_shipping_option_that_was_chosen(ask: Ask) -> None:
    arguments = {"lines": DESK, "destination": SAN_FRANCISCO, "currency": "USD"}

    cheapest = ask(TOTAL, arguments)
    express = ask(TOTAL, {**arguments, "shipping_option_id": "swiftwing.express.US1"})

    assert any("No shipping option was chosen" in warning for warning in cheapest.report.warnings)
    assert express.report.warnings == []
    assert Decimal(express.value["total"]) > Decimal(cheapest.value["total"])


@pytest.mark.req("SPEC-6")
def test_a_shipping_option_that_is_not_offered_is_refused_with_those_that_are(ask: Ask) -> None:
    with pytest.raises(runtime.InvalidArgument) as refusal:
        ask(TOTAL, {"lines": DESK, "destination": SAN_FRANCISCO, "shipping_option_id": "eurolane.standard.NL1"})

    assert refusal.value.details["pointer"] == "/shipping_option_id"
    assert "northfreight.ground.US1" in refusal.value.details["offered"]


@pytest.mark.parametrize(
    ("code", "lines", "why"),
    [
        ("NOSUCH", DESK, "unknown"),
        ("SUMMER25", DESK, "not_in_force"),
        ("WELCOME10", [{"sku": "CHOCOLATE-72", "quantity": 1}], "below_minimum"),
        ("HOME15", DESK, "below_minimum"),
    ],
)
@pytest.mark.req("SPEC-6")
def test_a_coupon_that_does_not_apply_says_why(ask: Ask, code: str, lines: list[dict[str, Any]], why: str) -> None:
    with pytest.raises(runtime.InvalidArgument) as refusal:
        ask(TOTAL, {"lines": lines, "destination": BERLIN, "currency": "EUR", "coupon_code": code})

    assert refusal.value.details == {"pointer": "/coupon_code", "why": why}


def test_coupons_take_off_what_they_say_and_no_more_than_their_limit(ask: Ask) -> None:
    def parts(code: str, lines: list[dict[str, Any]]) -> dict[str, Decimal]:
        return _components(
            ask(TOTAL, {"lines": lines, "destination": SAN_FRANCISCO, "currency": "USD", "coupon_code": code}).value
        )

    assert parts("welcome10", DESK)["coupon"] == Decimal("-16.89")
    assert parts("WELCOME10", [{"sku": "LAPTOP-14", "quantity": 1}])["coupon"] == Decimal("-40.00")
    free = parts("SHIPFREE", DESK)
    assert free["shipping"] + free["shipping_coupon"] == 0
    mixed = ask(
        TOTAL,
        {
            "lines": [{"sku": "PAN-IRON-26", "quantity": 2}, *DESK], "destination": SAN_FRANCISCO, "currency": "USD",
            "coupon_code": "HOME15",
        },
    ).value  # fmt: skip
    assert [line["coupon_discount"] for line in mixed["lines"]] == ["15.00", "0.00", "0.00"]


def test_a_coupon_lowers_what_tax_is_charged_on(ask: Ask) -> None:
    def taxes(code: str | None, destination: dict[str, str]) -> Decimal:
        arguments = {"lines": DESK, "destination": destination, "currency": "USD"}
        return _components(ask(TOTAL, arguments | ({"coupon_code": code} if code else {})).value)["taxes"]

    assert taxes(None, SAN_FRANCISCO) == Decimal("15.17")  # 8.98 % of 119.00 and of 49.90
    assert taxes("WELCOME10", SAN_FRANCISCO) == Decimal("13.65")  # of 107.10 and of 44.91
    assert taxes("SHIPFREE", BERLIN) < taxes(None, BERLIN)  # VAT is charged on shipping too


def test_under_dap_import_charges_are_left_for_delivery_with_a_warning(ask: Ask) -> None:
    arguments = {"lines": [{"sku": "TENT-2P", "quantity": 2}], "destination": TORONTO, "currency": "CAD"}

    ddp = ask(TOTAL, {**arguments, "incoterm": "DDP"})
    dap = ask(TOTAL, {**arguments, "incoterm": "DAP"})

    assert Decimal(dap.value["on_delivery"]) > 0
    assert dap.value["landed_total"] == ddp.value["total"]
    assert any("on delivery" in warning for warning in dap.report.warnings)


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize(
    ("lines", "error"),
    [
        ([{"sku": "WINE-RED-750", "quantity": 1}], runtime.ComplianceBlocked),
        ([{"sku": "RUG-JUTE", "quantity": 4}], runtime.OutOfStock),
        ([{"sku": "NO-SUCH-THING", "quantity": 1}], runtime.NotFound),
        ([{"sku": "LAPTOP-14", "quantity": 1, "expected_unit_price": "1.00"}], runtime.PriceChanged),
        ([*DESK, DESK[0]], runtime.InvalidArgument),
    ],
)
@pytest.mark.parametrize("tool_id", [TOTAL, DRAFT])
def test_both_checkout_tools_refuse_what_cannot_be_sold(
    ask: Ask, tool_id: str, lines: list[dict[str, Any]], error: type[runtime.DomainError]
) -> None:
    arguments = {**ORDER, "lines": lines}
    if tool_id == TOTAL:
        arguments.pop("expected_total")

    with pytest.raises(error):
        ask(tool_id, arguments)


@pytest.mark.req("SPEC-5", "SPEC-7")
def test_a_total_is_fresh_for_a_minute_and_names_the_versions_it_rests_on(ask: Ask) -> None:
    answer = ask(TOTAL, {"lines": DESK, "destination": SAN_FRANCISCO})

    assert answer.report.ttl_seconds == 60
    assert set(answer.value["versions"].values()) <= {source.version for source in answer.report.sources}


@pytest.mark.req("SPEC-8")
def test_a_draft_order_holds_the_total_that_was_computed_for_it(ask: Ask) -> None:
    cart = {name: value for name, value in ORDER.items() if name != "expected_total"}

    total, draft = ask(TOTAL, cart).value, ask(DRAFT, ORDER).value

    assert draft["status"] == "draft"
    assert draft["total"] == total["total"] == ORDER["expected_total"]
    assert draft["components"] == total["components"]
    created, expires = (datetime.fromisoformat(draft[name]) for name in ("created_at", "expires_at"))
    assert expires - created == timedelta(hours=24)


@pytest.mark.req("SPEC-2")
def test_a_dry_run_checks_everything_and_makes_nothing(ask: Ask) -> None:
    real, dry = ask(DRAFT, ORDER).value, ask(DRAFT, ORDER, dry_run=True).value

    assert (dry["status"], dry["draft_order_id"], dry["address_digest"]) == ("validated", None, None)
    differing = {name for name in real if real[name] != dry[name]}
    assert differing == {"status", "draft_order_id", "address_digest"}
    with pytest.raises(runtime.PriceChanged):
        ask(DRAFT, {**ORDER, "expected_total": "1.00"}, dry_run=True)
    with pytest.raises(runtime.AddressInvalid):
        ask(DRAFT, {**ORDER, "destination": {**SAN_FRANCISCO, **BUYER, "line1": ""}}, dry_run=True)


@pytest.mark.req("SPEC-9")
def test_the_same_key_and_content_give_the_same_order_id_and_nothing_else_does(ask: Ask) -> None:
    def order_id(arguments: dict[str, Any], **call: Any) -> str:
        return str(ask(DRAFT, arguments, **call).value["draft_order_id"])

    first = order_id(ORDER, idempotency_key="k1", call_id="inv_1")
    assert order_id(ORDER, idempotency_key="k1", call_id="inv_2") == first
    others = {
        order_id(ORDER, idempotency_key="k2", call_id="inv_1"),
        order_id(ORDER, call_id="inv_1"),
        order_id(ORDER, call_id="inv_2"),
        order_id({**ORDER, "destination": {**ORDER_DESTINATION, "recipient": "Other"}}, idempotency_key="k1"),
    }
    assert len(others | {first}) == 5
    assert order_id(ORDER, call_id="inv_1") == order_id(ORDER, call_id="inv_1")


@pytest.mark.req("SPEC-10")
def test_a_draft_repeats_no_name_or_street_but_can_prove_its_address(ask: Ask) -> None:
    draft = ask(DRAFT, ORDER).value

    assert "Geheim" not in json.dumps(draft)
    address = {**SAN_FRANCISCO, **BUYER, "line2": None}
    canonical = json.dumps([draft["draft_order_id"], address], sort_keys=True, separators=(",", ":"))
    assert draft["address_digest"] == "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


@pytest.mark.req("SPEC-6", "SPEC-10")
@pytest.mark.parametrize("missing", ["recipient", "line1", "city"])
def test_an_order_needs_the_whole_address(ask: Ask, missing: str) -> None:
    with pytest.raises(runtime.AddressInvalid) as refusal:
        ask(DRAFT, {**ORDER, "destination": {**ORDER_DESTINATION, missing: "  "}})

    assert refusal.value.details["field"] == f"destination.{missing}"
    assert "Geheim" not in refusal.value.message + json.dumps(refusal.value.details)


@pytest.mark.req("SPEC-6")
def test_an_order_at_another_total_is_refused_with_the_current_one(ask: Ask) -> None:
    with pytest.raises(runtime.PriceChanged) as refusal:
        ask(DRAFT, {**ORDER, "expected_total": "195.60"})

    assert refusal.value.details["current"] == "195.61"


@pytest.mark.req("SPEC-6")
def test_goods_with_an_age_limit_need_the_age_to_be_verified_first(ask: Ask) -> None:
    knife = {
        "lines": [{"sku": "KNIFE-CHEF-20", "quantity": 1}], "destination": {**LONDON, **BUYER}, "currency": "GBP",
        "shipping_option_id": "eurolane.standard.NL1",
    }  # fmt: skip
    total = ask(TOTAL, knife).value

    assert total["required_age"] == 18
    with pytest.raises(runtime.NeedsConfirmation) as refusal:
        ask(DRAFT, {**knife, "expected_total": total["total"]})
    assert refusal.value.details["required_age"] == 18
    draft = ask(DRAFT, {**knife, "expected_total": total["total"], "verified_age": 30}).value
    assert (draft["required_age"], draft["compliance"][0]["decision"]) == (None, "allowed")


def test_a_draft_on_another_day_is_priced_anew(ask: Ask) -> None:
    lamp = {**ORDER, "lines": [{"sku": "LAMP-DESK", "quantity": 1}], "expected_total": "0.01"}
    totals = []
    for day in (datetime(2026, 11, 18, tzinfo=UTC), datetime(2026, 12, 18, tzinfo=UTC)):
        with pytest.raises(runtime.PriceChanged) as refusal:
            ask(DRAFT, lamp, started_at=day)
        totals.append(Decimal(refusal.value.details["current"]))

    assert totals[0] < totals[1]  # the autumn offer has ended
