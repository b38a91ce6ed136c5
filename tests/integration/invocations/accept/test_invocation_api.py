"""A call over REST, from the envelope to the answer and its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evidence.models import Fact
from invocations.models import Invocation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("each_way")]


def pair_of(call: dict[str, Any]) -> list[str]:
    invocation = Invocation.objects.order_by("-pk").first()
    assert invocation is not None
    assert invocation.wire_id == call["call_id"]
    return list(Fact.objects.filter(invocation_id=invocation.pk).order_by("id").values_list("kind", flat=True))


@pytest.mark.req("TOOLS-13", "TOOLS-18", "SPEC-4", "SPEC-5", "CARD-4")
def test_a_granted_call_answers_with_the_value_and_leaves_a_pair(
    caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any], worker: None
) -> None:
    enable("echo")
    grant()

    response = caller.invoke("sample.tools.echo", {"text": "hello"}, currency="EUR")

    body = response.json()
    assert response.status_code == 200, body
    assert body["ok"] is True
    assert body["data"] == {"text": "hello", "dry_run": False, "currency": "EUR"}
    assert body["call"]["status"] == "ok"
    assert [source["type"] for source in body["evidence"]["sources"]] == ["tool", "ruleset"]
    assert pair_of(body["call"]) == ["invocation.began", "invocation.ended"]
