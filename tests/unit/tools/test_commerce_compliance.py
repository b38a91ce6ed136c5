"""Commerce compliance: does the check find every rule that speaks to an item, and does the strictest decide?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commerce import catalog, compliance, tables
from unitools import runtime

if TYPE_CHECKING:
    from tests.unit.tools.conftest import Ask

CHECK = "commerce.compliance.check_item"
RULES = tables.read(tables.COMPLIANCE_RULES)["rules"]
CODES = tables.read("countries.json")["codes"]


def _ids(value: dict[str, Any]) -> list[str]:
    return [reason["rule_id"] for reason in value["reasons"]]


@given(sku=st.sampled_from(sorted(catalog.products())), country=st.sampled_from(CODES))
def test_the_strictest_unsatisfied_rule_decides(ask: Ask, sku: str, country: str) -> None:
    value = ask(CHECK, {"sku": sku, "destination_country": country}).value
    effects = {reason["effect"] for reason in value["reasons"] if not reason["satisfied"]}

    expected = "blocked" if "blocked" in effects else "restricted" if effects else "allowed"
    assert value["decision"] == expected
    assert all(reason["citations"] for reason in value["reasons"])


@given(sku=st.sampled_from(sorted(catalog.products())), country=st.sampled_from(CODES), age=st.integers(0, 120))
def test_a_verified_age_never_makes_a_decision_stricter(ask: Ask, sku: str, country: str, age: int) -> None:
    without, with_age = (
        ask(CHECK, {"sku": sku, "destination_country": country} | extra).value["decision"]
        for extra in ({}, {"verified_age": age})
    )

    assert compliance.SEVERITY[with_age] <= compliance.SEVERITY[without]


@pytest.mark.parametrize(
    ("sku", "country", "decision", "rules"),
    [
        ("HEADPHONES-ANC", "DE", "allowed", []),
        ("POWERBANK-20K", "DE", "restricted", ["LITH-AIR-STANDALONE"]),
        ("POWERBANK-30K", "DE", "restricted", ["LITH-100-160"]),
        ("POWERSTATION-500", "AU", "blocked", ["LITH-OVER-160"]),
        ("POWERSTATION-500", "US", "restricted", ["LITH-OVER-160-SURFACE"]),
        ("WINE-RED-750", "US", "blocked", ["ALC-US"]),
        ("WHISKY-700", "JP", "restricted", ["ALC-AGE-20"]),
        ("KNIFE-AUTO", "GB", "blocked", ["KNIFE-AUTO", "KNIFE-AGE-18"]),
        ("KNIFE-FOLDING", "GB", "allowed", []),
        ("JERKY-BEEF", "DE", "blocked", ["FOOD-MEAT"]),
        ("JERKY-BEEF", "US", "restricted", ["FOOD-FDA-PN"]),
        ("SEEDS-TOMATO", "AU", "blocked", ["PLANT-SEEDS"]),
        ("SERUM-VITC", "FR", "restricted", ["COSM-EU-RP"]),
        ("PERFUME-50", "FR", "restricted", ["DG-FLAMMABLE-AIR"]),
        ("CAMERA-THERMAL", "RU", "blocked", ["SANC-DUAL-USE", "SANC-RU-TECH", "DUAL-USE-LICENCE"]),
        ("CRYPTO-HSM-USB", "CN", "restricted", ["CRYPTO-IMPORT", "DUAL-USE-LICENCE"]),
        ("LASER-POINTER-G", "CH", "blocked", ["LASER-3R"]),
        ("NOTEBOOK-A5", "KP", "blocked", ["SANC-EMBARGO"]),
    ],
)
def test_known_cases_are_decided_as_their_rules_say(
    ask: Ask, sku: str, country: str, decision: str, rules: list[str]
) -> None:
    value = ask(CHECK, {"sku": sku, "destination_country": country}).value

    assert (value["decision"], _ids(value)) == (decision, rules)


@pytest.mark.parametrize(("age", "decision"), [(None, "restricted"), (17, "restricted"), (18, "allowed")])
def test_an_age_limit_is_satisfied_by_a_verified_age(ask: Ask, age: int | None, decision: str) -> None:
    arguments = {"sku": "KNIFE-CHEF-20", "destination_country": "GB"} | ({} if age is None else {"verified_age": age})

    assert ask(CHECK, arguments).value["decision"] == decision


def test_a_quantity_can_bring_a_rule_in(ask: Ask) -> None:
    few, many = (ask(CHECK, {"sku": "DRONE-MINI", "destination_country": "CH", "quantity": n}).value for n in (2, 3))

    assert "LITH-QUANTITY" not in _ids(few)
    assert "LITH-QUANTITY" in _ids(many)


def test_goods_without_a_sku_are_judged_by_their_description(ask: Ask) -> None:
    item = {
        "hs_code": "850760",
        "country_of_origin": "CN",
        "attributes": {"lithium_wh": 99.9, "lithium_packing": "standalone", "cosmetic": False},
    }

    value = ask(CHECK, {"item": item, "destination_country": "FR"}).value

    assert _ids(value) == ["LITH-AIR-STANDALONE"]


@pytest.mark.req("SPEC-6", "SPEC-7")
def test_an_enforced_check_refuses_and_names_rules_and_ruleset(ask: Ask) -> None:
    with pytest.raises(runtime.ComplianceBlocked) as refusal:
        ask(CHECK, {"sku": "JERKY-BEEF", "destination_country": "AU", "enforce": True})

    assert [rule["id"] for rule in refusal.value.details["rules"]] == ["FOOD-MEAT"]
    assert refusal.value.details["ruleset_version"] == tables.version(tables.COMPLIANCE_RULES)


def test_an_enforced_check_lets_restricted_goods_pass_with_a_warning(ask: Ask) -> None:
    answer = ask(CHECK, {"sku": "POWERBANK-20K", "destination_country": "DE", "enforce": True})

    assert answer.value["decision"] == "restricted"
    assert answer.report.warnings == ["The goods may be sent only when every requirement is met."]


def test_a_rule_that_has_run_out_is_not_looked_at(ask: Ask) -> None:
    masks = {"hs_code": "630790", "country_of_origin": "CN"}

    value = ask(CHECK, {"item": masks, "destination_country": "GB"}).value

    assert value["decision"] == "allowed"
    assert value["checked_rules"] == len(RULES) - 1


@pytest.mark.req("SPEC-6")
def test_a_destination_that_is_no_country_is_refused(ask: Ask) -> None:
    with pytest.raises(runtime.InvalidArgument, match="ISO 3166"):
        ask(CHECK, {"sku": "LAMP-DESK", "destination_country": "XX"})


@pytest.mark.req("SPEC-6")
def test_a_check_of_nothing_is_refused() -> None:
    with runtime.running(runtime.Call()), pytest.raises(runtime.InvalidArgument, match="sku"):
        compliance.check_item(destination_country="DE")


def test_every_rule_is_whole() -> None:
    for rule in RULES:
        assert rule["effect"] in ("restricted", "blocked"), rule["id"]
        assert rule["citations"] and rule["reason"].endswith("."), rule["id"]
        assert {*rule["destinations"], *rule.get("except", [])} <= {*CODES, "*"}, rule["id"]
        assert {condition.get("op", "exists") for condition in rule["when"]} <= set(compliance.COMPARE), rule["id"]
    assert len({rule["id"] for rule in RULES}) == len(RULES)
