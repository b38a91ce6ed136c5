"""Conditional changes: does nobody overwrite what they have not seen, however many change one address at once?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from tests.support.concurrency import at_once, together

if TYPE_CHECKING:
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db(transaction=True)
PATH = "/api/v1/evidence/retention"


def put_days(caller: Caller, days: int, **headers: str) -> Any:
    body = {"days": {"logs": days}}
    return Client().put(PATH, body, content_type="application/json", headers=caller.headers() | headers)


@pytest.mark.req("CONN-6")
def test_of_eight_who_hold_the_same_tag_one_makes_the_change(caller: Caller) -> None:
    tag = caller.get("/evidence/retention").headers["ETag"]

    answers: list[Any] = at_once(8, lambda number: put_days(caller, 30 + number, **{"If-Match": tag}))

    assert sorted(answer.status_code for answer in answers) == [200, *[412] * 7]
    (made,) = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert caller.get("/evidence/retention").json()["data"]["days"]["logs"] == 30 + made


@pytest.mark.req("CONN-6")
def test_a_change_without_a_condition_waits_for_one_that_was_compared_already(
    caller: Caller,
) -> None:
    tag = caller.get("/evidence/retention").headers["ETag"]
    answers: list[Any] = []

    together(
        lambda: answers.append(put_days(caller, 99, **{"If-Match": tag})),
        lambda: answers.append(put_days(caller, 77)),
    )

    assert [answer.status_code for answer in answers] == [200, 200]
    assert caller.get("/evidence/retention").json()["data"]["days"]["logs"] == 77
