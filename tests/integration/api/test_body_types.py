"""Body types: is a body taken only as what it is: text as text, numbers as numbers; and do answers keep to the document?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from django.test import Client
from rest_framework import serializers

from access.budgets.services import set_budget
from access.models import BudgetScope, Dimension
from kernel.http.base_serializers import StrictSerializer
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
ECHO = "sample.tools.echo"


class Everything(StrictSerializer):
    text = serializers.CharField(required=False)
    number = serializers.IntegerField(required=False)
    ratio = serializers.FloatField(required=False)
    flag = serializers.BooleanField(required=False)
    choice = serializers.ChoiceField(["1", "2"], required=False)
    day = serializers.DateField(required=False)
    texts = serializers.ListField(child=serializers.CharField(), required=False)
    named = serializers.DictField(child=serializers.IntegerField(), required=False)
    anything = serializers.JSONField(required=False)


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize(
    "body",
    [{"text": 12345}, {"text": 1.5}, {"number": "5"}, {"number": True}, {"ratio": "0.5"}, {"flag": "yes"}, {"flag": 1},
     {"choice": 1}, {"choice": "3"}, {"day": 20300101}, {"texts": ["a", 1]}, {"named": {"a": "1"}}],
)  # fmt: skip
def test_a_value_of_another_type_than_the_fields_is_refused(body: dict[str, Any]) -> None:
    read = Everything(data=body)

    assert not read.is_valid()
    assert set(read.errors) == set(body)


def test_what_is_right_is_read() -> None:
    body = {
        "text": "a",
        "number": 5,
        "ratio": 1,
        "flag": True,
        "choice": "1",
        "texts": ["a"],
        "named": {"a": 1},
        "anything": 7,
    }
    read = Everything(data=body)

    assert read.is_valid(), read.errors
    assert dict(read.validated_data) == body


@pytest.mark.req("SPEC-6")
@pytest.mark.parametrize(
    ("name", "says"), [(12345, "This must be a text."), (True, "This must be a text."), ("a\nb", "nobody sees"),
                       ("a\u202eb", "nobody sees"), ("a\x1b[31m", "nobody sees")],
)  # fmt: skip
def test_an_agents_name_is_text_that_people_can_read(name: Any, says: str, caller: Caller) -> None:
    body = assert_problem(caller.post("/agents", {"name": name}), 422, "SCHEMA.VALIDATION_FAILED")

    [finding] = body["error"]["details"]["findings"]
    assert (finding["pointer"], says in finding["message"]) == ("/name", True)


@pytest.mark.parametrize("dimension", [Dimension.CALLS, Dimension.CONCURRENCY])
def test_nobody_is_told_to_call_again_where_the_limit_is_0(
    dimension: Dimension,
    enable: Callable[..., Tool],
    caller: Caller,
    grant: Callable[..., Any],
    operator: Person,
    bell: Bell,
) -> None:
    enable("echo")
    grant()
    window_s = 0 if dimension == Dimension.CONCURRENCY else 3600
    set_budget(
        scope=BudgetScope.TENANT, dimension=dimension, amount=0, window_s=window_s, reason="closed", by=operator.by
    )

    answer = caller.invoke(ECHO, {"text": "x"})

    assert answer.status_code == 429
    error = answer.json()["error"]
    assert (error["retryable"], "retry_after_s" in error) == ("after_action", False)
    assert "Retry-After" not in answer.headers


@pytest.mark.req("SPEC-6")
def test_the_answer_to_a_checked_policy_is_as_the_document_says(caller: Caller) -> None:
    document = Client().get("/api/v1/openapi.json").json()
    answered = document["paths"]["/api/v1/policies/check"]["post"]["responses"]["200"]
    schema = answered["content"]["application/json"]["schema"] | {"components": document["components"]}
    wrong = {"format": 1, "rules": [{"effect": "never"}]}

    answer = caller.post("/policies/check", {"document": wrong}).json()

    assert answer["data"]["findings"]
    assert [str(error) for error in jsonschema_rs.validator_for(schema).iter_errors(answer)] == []
