"""Erasure pages: can owners erase a person and set times, in the console and over REST, looking first and confirming then?"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Any

import pytest

from access.roles import Role
from evidence.erasures import services as erasures
from evidence.models import Erasure
from evidence.problems import KeyUnavailable
from evidence.search.saved_searches import save_search
from tests.conftest import make_person
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from uuid import UUID

    from access.models import Tenant
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
ASKED = {"user_id": "user-4711", "reason": "Asked for in ticket 812."}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "oona", Role.OWNER)


@pytest.mark.req("SPEC-10")
def test_in_the_console_nothing_is_erased_before_it_was_looked_at(owner: Person) -> None:
    client = owner.client()
    shown = client.post("/evidence/erasures/new", ASKED)
    assert shown.status_code == 200
    assert not Erasure.objects.exists()
    confirm = html.unescape(re.search(r'name="confirm" value="([^"]+)"', shown.content.decode())[1])  # type: ignore[index]

    wrong = client.post("/evidence/erasures/confirm", ASKED | {"confirm": "made up"})
    assert wrong.status_code == 422
    assert not Erasure.objects.exists()
    begun = client.post("/evidence/erasures/confirm", ASKED | {"confirm": confirm})

    row = Erasure.objects.get()
    assert begun.headers["Location"] == f"/evidence/erasures/{row.wire_id}"
    assert "user-4711" not in client.get(begun.headers["Location"]).content.decode()
    assert row.wire_id in client.get(begun.headers["Location"]).content.decode()
    assert "ticket 812" in client.get("/evidence/erasures").content.decode()


@pytest.mark.req("SPEC-10")
def test_over_rest_a_preview_comes_first_and_its_word_begins_the_erasure(caller: Caller) -> None:
    preview = caller.post("/evidence/erasures", ASKED)
    assert preview.status_code == 200
    said: dict[str, Any] = preview.json()["data"]
    assert (said["id"], said["state"], said["concerns"]) == (None, "preview", {})
    assert_problem(
        caller.post("/evidence/erasures", ASKED | {"confirm": "made up"}), 409, "EVIDENCE.ERASURE_NOT_CONFIRMED"
    )

    begun = caller.post("/evidence/erasures", ASKED | {"confirm": said["confirm"]})
    assert begun.status_code == 202
    erasures.advance_erasures()

    found = caller.get(begun.headers["Location"].removeprefix("/api/v1")).json()["data"]
    assert found["state"] == "done"
    assert [each["id"] for each in caller.get("/evidence/erasures").json()["data"]["erasures"]] == [found["id"]]


@pytest.mark.req("SPEC-10")
def test_times_are_read_over_rest(caller: Caller) -> None:
    days = caller.get("/evidence/retention").json()["data"]["days"]

    assert set(days) == {"inputs", "outputs", "errors", "logs", "segments", "artifacts", "files"}
    assert set(days.values()) == {None}


@pytest.mark.req("SPEC-10")
@pytest.mark.unmapped
def test_an_erasure_that_cannot_go_on_holds_up_no_other(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("first", "second"):
        _, confirm = erasures.preview_erasure(user_id=user, by=owner.by)
        erasures.erase_subject(user_id=user, reason=ASKED["reason"], confirm=confirm, by=owner.by)
    first, second = Erasure.objects.order_by("id")
    goes_on = erasures.advance_erasure

    def broken(erasure_id: UUID) -> bool:
        if erasure_id == first.pk:
            raise KeyUnavailable("The key of the tenant is not in the key file.")
        return goes_on(erasure_id)

    monkeypatch.setattr(erasures, "advance_erasure", broken)
    erasures.advance_erasures()

    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.state, second.state) == ("asked", "done")


@pytest.mark.req("SPEC-10")
def test_other_names_are_given_one_a_line_shown_and_confirmed_together(owner: Person) -> None:
    client, asked = owner.client(), ASKED | {"names": "Ann Lindqvist\r\n\r\n 林德 "}
    row = save_search(name="of 林德", query="outcome:failed", shared=True, by=owner.by)
    shown = client.post("/evidence/erasures/new", asked).content.decode()
    assert "Ann Lindqvist" in shown
    sent = {name: html.unescape(text) for name, text in re.findall(r'name="(\w+)"[^>]* value="([^"]*)"', shown)}
    assert sent["names"].split("\n") == ["Ann Lindqvist", "林德"]

    fewer = client.post("/evidence/erasures/confirm", sent | {"names": "林德"})
    assert fewer.status_code == 422
    assert client.post("/evidence/erasures/confirm", sent).status_code == 302

    row.refresh_from_db()
    assert row.name == f"(erased) {row.wire_id}"
    page = client.get(f"/evidence/erasures/{Erasure.objects.get().wire_id}").content.decode()
    assert "Texts that name the person" in page
    assert "Lindqvist" not in page
