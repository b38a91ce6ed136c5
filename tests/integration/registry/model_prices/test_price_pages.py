"""Price pages: does a person see in the console what models cost, from which day on and since which version, and set it?"""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from registry.model_prices.pages import mark_in_force
from registry.model_prices.services import find_prices_in_force
from registry.models import ModelPrices
from tests.support.connected_models import connect_scripted_model, set_script_prices

if TYPE_CHECKING:
    from tests.conftest import Person

pytestmark = pytest.mark.django_db
ONE = {"provider": "openai", "model": "gpt-4o", "effective_from": "2026-01-01", "input": "2.10", "output": "8.40"}


def document_of(person: Person) -> dict[str, Any]:
    row = find_prices_in_force(person.by.tenant_id)
    assert row is not None
    found: dict[str, Any] = row.document
    return found


@pytest.mark.req("LLM-7")
def test_of_several_days_the_last_that_has_begun_is_in_force() -> None:
    days = ["2026-01-01", "2026-06-01", "2026-12-01"]
    rows = [{"model": "a", "effective_from": day} for day in days] + [{"model": "b", "effective_from": "2026-12-01"}]

    found = mark_in_force(rows, date(2026, 7, 1), of=("model",))

    assert [each["state"] for each in found] == ["past", "now", "later", "later"]


@pytest.mark.req("LLM-7")
def test_a_price_from_a_day_on_is_a_new_version_beside_the_others(operator: Person) -> None:
    client = operator.client()
    first = client.post("/model-prices/add", ONE | {"reason": "the contract"})
    later = client.post("/model-prices/add", ONE | {"effective_from": "2999-01-01", "input": "1", "reason": "cheaper"})
    again = client.post("/model-prices/add", ONE | {"input": "2.00", "reason": "a slip"})

    assert [each.status_code for each in (first, later, again)] == [302, 302, 302]
    found = [(each["effective_from"], each["input"]) for each in document_of(operator)["prices"]]
    assert found == [("2026-01-01", "2"), ("2999-01-01", "1")]
    page = client.get("/model-prices").content.decode()
    assert "$8.4" in page
    assert "Later" in page
    assert "the contract" in client.get("/model-prices/1").content.decode()
    assert list(ModelPrices.objects.order_by("number").values_list("reason", flat=True)) == [
        "the contract",
        "cheaper",
        "a slip",
    ]


@pytest.mark.req("LLM-7")
def test_a_document_is_whole(operator: Person) -> None:
    client = operator.client()
    set_script_prices(operator.by, input="1")
    assert '"script"' in client.get("/model-prices/new").context["form"]["document"].value()
    said = {"currency": "EUR", "rates": [{"effective_from": "2026-01-01", "rate": "0.92"}], "prices": [ONE]}

    answer = client.post("/model-prices/new", {"document": json.dumps(said), "reason": "all of it"})

    assert answer.status_code == 302
    assert [each["model"] for each in document_of(operator)["prices"]] == ["gpt-4o"]
    assert "0.92 EUR" in client.get("/model-prices").content.decode()


@pytest.mark.req("LLM-7")
@pytest.mark.parametrize(
    ("change", "field"),
    [({"input": "cheap"}, "input"), ({"effective_from": "soon"}, "effective_from"), ({"provider": "No!"}, "provider")],
)
def test_a_price_that_is_none_is_refused_at_its_field(change: dict[str, str], field: str, operator: Person) -> None:
    answer = operator.client().post("/model-prices/add", ONE | change | {"reason": "for a test"})

    assert (answer.status_code, set(answer.context["form"].errors)) == (422, {field})
    assert not ModelPrices.objects.exists()


@pytest.mark.req("LLM-7")
def test_a_document_that_is_wrong_is_refused_in_words_with_the_place(operator: Person) -> None:
    client = operator.client()
    said = json.dumps({"prices": [ONE, ONE | {"input": "-1"}]})

    wrong = client.post("/model-prices/new", {"document": said, "reason": "for a test"})
    broken = client.post("/model-prices/new", {"document": "{", "reason": "for a test"})

    assert (wrong.status_code, broken.status_code) == (422, 422)
    assert "/prices/1/input" in wrong.context["form"].errors["document"][0]
    assert "not valid JSON" in broken.context["form"].errors["document"][0]
    assert not ModelPrices.objects.exists()


@pytest.mark.req("LLM-7")
def test_auditors_see_prices_and_set_none(operator: Person, auditor: Person, developer: Person) -> None:
    connect_scripted_model(operator.by)
    set_script_prices(operator.by, input="2.10")
    page = auditor.client().get("/model-prices").content.decode()

    assert "$2.1" in page
    assert "/model-prices/add" not in page
    assert auditor.client().get("/model-prices/1").status_code == 200
    assert developer.client().get("/model-prices").status_code == 403
