"""Client registration: what does a program get that makes itself known, and how many may?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from oauth2_provider.models import AccessToken, Application

from kernel.database.connections import database_time
from tests.support.connections import REDIRECT, Program, register
from tests.support.tokens import ask

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("CONN-1")
def test_a_registration_gives_an_id_and_nothing_that_opens_anything() -> None:
    made = register(token_endpoint_auth_method="client_secret_post").json()

    assert "registration_access_token" not in made
    assert "registration_client_uri" not in made
    assert not AccessToken.objects.exists()
    assert ask(made["client_secret"]).status_code == 401


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("grants", [["client_credentials"], ["authorization_code", "client_credentials"], ["password"]])
def test_nobody_registers_for_credentials_of_its_own(grants: list[str]) -> None:
    answer = register(grant_types=grants)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_client_metadata")


@pytest.mark.req("CONN-1")
def test_a_registered_client_gets_no_token_for_itself() -> None:
    made = register(token_endpoint_auth_method="client_secret_post").json()

    answer = Client().post(
        "/oauth/token",
        {
            "grant_type": "client_credentials",
            "client_id": made["client_id"],
            "client_secret": made["client_secret"],
        },
    )

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")


@pytest.mark.req("CONN-1")
def test_a_row_of_the_librarys_tables_opens_nothing(operator: Person) -> None:
    application = Application.objects.get(client_id=register().json()["client_id"])
    text = "hubo_" + "A" * 49
    AccessToken.objects.create(
        user=operator.user,
        application=application,
        token=text,
        expires=database_time() + timedelta(days=1),
        scope="tools:read",
    )

    assert ask(text).status_code == 401


# How many.


@pytest.mark.req("CONN-1")
def test_an_address_registers_ten_programs_an_hour() -> None:
    body, place = json.dumps({"redirect_uris": [REDIRECT]}), "198.51.100.77"
    found = [
        Client().post("/oauth/register", body, content_type="application/json", REMOTE_ADDR=place) for _ in range(12)
    ]

    assert [each.status_code for each in found][:10] == [201] * 10
    assert found[-1].status_code == 429
    assert int(found[-1].headers["Retry-After"]) > 0


@pytest.mark.req("CONN-1")
def test_what_nobody_lets_in_goes_after_a_day(operator: Person, caller: Caller) -> None:
    used, unused = Program.registered(), Program.registered()
    used.connect(operator, caller.agent)
    Application.objects.update(created=database_time() - timedelta(hours=25))

    Program.registered()

    kept = set(Application.objects.values_list("client_id", flat=True))
    assert used.client_id in kept
    assert unused.client_id not in kept


@pytest.mark.req("CONN-1")
def test_where_too_many_have_registered_the_oldest_goes_if_no_person_reads_it_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("access.oauth.clients.MAX_WITHOUT_CONNECTION", 2)
    first, second = Program.registered(), Program.registered()

    assert register().status_code == 503
    Application.objects.update(created=database_time() - timedelta(hours=2))
    Application.objects.filter(client_id=second.client_id).update(created=database_time() - timedelta(hours=3))
    assert register().status_code == 201

    kept = set(Application.objects.values_list("client_id", flat=True))
    assert first.client_id in kept
    assert second.client_id not in kept
    assert len(kept) == 2
