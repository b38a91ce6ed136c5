"""Known devices: who signs in from a browser that they have used before: what is counted for it, and what is not asked for the
others?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.integration.access.sign_in.test_sign_in import no_attempts_yet, sign_in  # noqa: F401  a fixture

if TYPE_CHECKING:
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


def people_looked_up(queries: CaptureQueriesContext) -> list[str]:
    table = get_user_model()._meta.db_table
    return [query["sql"] for query in queries.captured_queries if f'FROM "{table}"' in query["sql"]]


def test_a_device_that_signed_in_before_is_let_through_whoever_guesses_beside_it(operator: Person) -> None:
    own = Client()
    assert sign_in("olivia", client=own).status_code == 302
    device = own.cookies["device"]
    own.cookies.pop("sessionid")
    for _ in range(70):
        sign_in("olivia", "wrong password")  # from the same address

    assert sign_in("olivia").status_code == 429
    assert sign_in("olivia", client=own).status_code == 302
    assert (device["httponly"], device["samesite"], device["max-age"]) == (True, "Lax", 365 * 24 * 60 * 60)
    assert "olivia" not in device.value


def test_guessing_with_a_known_device_is_slowed_down_too(operator: Person) -> None:
    own = Client()
    sign_in("olivia", client=own)
    own.cookies.pop("sessionid")

    answers = [sign_in("olivia", "wrong password", own) for _ in range(11)]

    assert "Too many failed" not in answers[9].content.decode()
    assert "Too many failed" in answers[10].content.decode()


def test_a_known_device_that_asks_very_often_is_slowed_down_whatever_it_sends(operator: Person, settings: Any) -> None:
    own = Client()
    sign_in("olivia", client=own)
    own.cookies.pop("sessionid")
    cache.clear()
    settings.ACCOUNT_RATE_LIMITS = {"login": "1/m/ip", "login_device": "2/m/key"}

    answers = [sign_in("olivia", "", own) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [422, 422, 422, 429]  # two of the device, one of the address


def test_a_name_with_a_nul_is_refused_and_nobody_is_looked_up(operator: Person) -> None:
    own = Client()
    sign_in("olivia", client=own)
    own.cookies.pop("sessionid")

    with CaptureQueriesContext(connection) as queries:
        answer = sign_in("olivia\0", client=own)

    assert answer.status_code == 422
    assert people_looked_up(queries) == []


def test_for_an_address_that_is_slowed_down_nobody_is_looked_up(operator: Person, settings: Any) -> None:
    settings.ACCOUNT_RATE_LIMITS = {"login": "1/m/ip"}
    stranger = Client()
    stranger.cookies["device"] = "nonsense"
    sign_in("olivia", "wrong password", stranger)

    with CaptureQueriesContext(connection) as queries:
        answer = sign_in("olivia", "wrong password", stranger)

    assert answer.status_code == 429
    assert people_looked_up(queries) == []


@pytest.mark.parametrize("cookie", ["", "nonsense", "eyJpZCI6ICJhIn0:1:x"])
def test_a_device_is_known_by_the_hubs_signature_only(cookie: str, operator: Person) -> None:
    stranger = Client()
    stranger.cookies["device"] = cookie

    answers = [sign_in("olivia", "wrong password", stranger) for _ in range(6)]

    assert "Too many failed" in answers[-1].content.decode()
