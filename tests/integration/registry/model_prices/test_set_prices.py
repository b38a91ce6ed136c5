"""Set prices: does what a person says of prices count with the next call, version by version, and is each change a fact?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from evidence.models import Fact
from kernel.canonical import compute_digest
from registry.model_prices.price_tables import find_price_table, forget_price_tables
from registry.model_prices.services import find_prices_in_force
from registry.models import ModelPrices
from tests.support.calls import assert_problem
from tests.support.connected_models import MODEL, connect_scripted_model, set_script_prices

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test.utils import CaptureQueriesContext

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
PRICE = {"provider": "script", "model": "script-001", "effective_from": "2026-01-01", "input": "2.50"}
EUROS: dict[str, Any] = {"currency": "EUR", "rates": [{"effective_from": "2026-01-01", "rate": "0.92"}]}


def put(caller: Caller, **document: Any) -> Any:
    return caller.put("/model-prices", {"reason": "the contract", **document})


@pytest.mark.req("LLM-7")
def test_prices_are_read_as_they_were_set_in_the_one_way_of_writing_them(caller: Caller) -> None:
    answer = put(caller, prices=[PRICE, PRICE | {"effective_from": "2025-01-01", "output": 10}], **EUROS)

    said = answer.json()["data"]
    old = {"provider": "script", "model": "script-001", "effective_from": "2025-01-01", "input": "2.5", "output": "10"}
    assert (answer.status_code, said) == (200, caller.get("/model-prices").json()["data"])
    assert said["prices"] == [old, PRICE | {"input": "2.5"}]
    assert (said["number"], said["currency"], said["rates"]) == (1, "EUR", EUROS["rates"])
    assert (said["reason"], said["set_by"]) == ("the contract", caller.by.id)


@pytest.mark.req("LLM-7", "LLM-10")
def test_a_tenant_that_has_set_none_has_those_of_the_package_in_dollars(caller: Caller) -> None:
    said = caller.get("/model-prices").json()["data"]

    assert (said["number"], said["currency"], said["rates"], said["prices"]) == (0, "USD", [], [])
    assert said["version"].startswith("genai-prices-")


@pytest.mark.req("LLM-7", "LLM-10")
def test_each_change_is_a_version_with_a_fact_and_earlier_ones_can_be_read(caller: Caller) -> None:
    put(caller, prices=[PRICE])
    second = put(caller, prices=[]).json()["data"]

    fact = json.loads(bytes(Fact.objects.filter(kind="model_prices.set").latest("id").leaf))
    assert caller.get("/model-prices?number=1").json()["data"]["prices"] == [PRICE | {"input": "2.5"}]
    assert_problem(caller.get("/model-prices?number=3"), 404, "RESOURCE.NOT_FOUND")
    assert (second["number"], fact["data"]["number"], fact["data"]["version"]) == (2, 2, second["version"])
    assert fact["data"]["document"] == compute_digest({"currency": "USD", "rates": [], "prices": []})


@pytest.mark.req("LLM-7", "LLM-10")
def test_setting_what_is_in_force_changes_nothing(caller: Caller) -> None:
    first = put(caller, prices=[PRICE]).json()["data"]
    again = put(caller, prices=[PRICE | {"input": "2.500"}], reason="again").json()["data"]

    assert first == again
    assert Fact.objects.filter(kind="model_prices.set").count() == 1


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a negative price": ({"prices": [PRICE | {"input": "-1"}]}, "/prices/0/input"),
    "no rate": ({"currency": "EUR"}, "/rates"),
    "a rate of dollars": ({"rates": EUROS["rates"]}, "/rates"),
    "a rate of nothing": (
        {"currency": "EUR", "rates": [{"effective_from": "2026-01-01", "rate": "0"}]},
        "/rates/0/rate",
    ),
    "two rates from one day": ({"currency": "EUR", "rates": EUROS["rates"] * 2}, "/rates/1/effective_from"),
    "no currency": ({"currency": "euro"}, "/currency"),
    "an unknown word": ({"price": []}, "/price"),
}


@pytest.mark.req("LLM-7", "LLM-10")
@pytest.mark.parametrize("kind", WRONG)
def test_what_is_no_price_is_refused_at_its_place_and_nothing_is_set(kind: str, caller: Caller) -> None:
    document, place = WRONG[kind]

    refused = assert_problem(put(caller, **document), 422, "SCHEMA.VALIDATION_FAILED")

    assert [each["pointer"] for each in refused["error"]["details"]["findings"]] == [place]
    assert not ModelPrices.objects.exists()


@pytest.mark.req("LLM-7", "LLM-10")
def test_a_person_who_manages_models_sets_prices_and_a_stranger_sees_none_of_them(
    operator: Person, foreign_caller: Caller
) -> None:
    body = {"reason": "the contract", "prices": [PRICE]}
    answer = operator.client().put("/api/v1/model-prices", body, content_type="application/json")

    assert answer.status_code == 200, answer.content
    assert foreign_caller.get("/model-prices").json()["data"]["number"] == 0
    assert Client().get("/api/v1/model-prices").status_code == 401


@pytest.mark.req("LLM-7", "LLM-10")
def test_a_version_is_read_once_a_process(operator: Person, django_assert_num_queries: Any) -> None:
    row = set_script_prices(operator.by, input="1")
    forget_price_tables()
    queries: CaptureQueriesContext
    with django_assert_num_queries(1) as queries:
        first = find_price_table(row.pk)
        assert find_price_table(row.pk) is first
    assert "modelprices" in queries.captured_queries[0]["sql"].replace("_", "")
    assert find_prices_in_force(operator.by.tenant_id) == row


@pytest.mark.req("LLM-10")
def test_an_agent_is_told_the_price_in_force_and_the_tag_changes_with_it(
    caller: Caller, operator: Person, grant: Callable[..., Any]
) -> None:
    grant("model.*")
    connect_scripted_model(operator.by)
    unpriced = caller.get("/models")
    set_script_prices(operator.by, input="1", output="10", **EUROS)

    changed = caller.get("/models", **{"If-None-Match": unpriced.headers["ETag"]})
    [model] = changed.json()["data"]["models"]

    assert unpriced.json()["data"]["models"][0]["price"] is None
    assert changed.status_code == 200
    version = find_price_table(find_prices_in_force(operator.by.tenant_id).pk).version  # type: ignore[union-attr]
    assert model["price"] == {
        "origin": "set",
        "input": "1",
        "output": "10",
        "image": "0",
        "audio_second": "0",
        "request": "0",
        "version": version,
        "currency": "EUR",
        "rate": "0.92",
    }
    assert caller.get(f"/models/{MODEL}").json()["data"] == model
    same = caller.get("/models", **{"If-None-Match": changed.headers["ETag"]})
    assert same.status_code == 304
