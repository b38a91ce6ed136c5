"""Problem pages: does somebody who was refused, or found nothing, read what would help?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.display import middleware
from access.roles import Role
from kernel.ids import encode, new_id
from tests.conftest import make_person

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


@pytest.mark.req("CARD-3")
def test_a_refused_person_reads_what_the_permission_is_called_who_has_it_and_who_can_give_it(
    tenant: Tenant, developer: Person
) -> None:
    make_person(tenant, "oona", Role.OWNER)

    response = developer.client().get(reverse("grant_new"))

    page = response.content.decode()
    assert response.status_code == 403
    assert "You need this permission: Give and revoke grants." in page
    assert "People with one of the roles Owner, Operator have it. Oona can give it to you." in page
    assert "Try again" not in page


def test_what_only_owners_of_the_hub_may_is_said_so(operator: Person) -> None:
    page = operator.client().get(reverse("tenants")).content.decode()

    assert "Only owners of the hub have it." in page


@pytest.mark.unmapped
def test_an_error_before_the_display_settings_are_known_has_its_page(
    operator: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(user: Any) -> None:
        raise RuntimeError("the settings could not be read")

    client = operator.client()
    client.raise_request_exception = False
    monkeypatch.setattr(middleware, "find_display", fail)

    response = client.get(reverse("invocations"))

    page = response.content.decode()
    assert response.status_code == 500
    assert "<h1" in page
    assert reverse("sign_out") in page  # in its frame


@pytest.mark.req("CARD-3")
def test_who_finds_nothing_reads_what_was_looked_for_and_where(tenant: Tenant, operator: Person) -> None:
    call = encode("inv", new_id())

    response = operator.client().get(f"/invocations/{call}", headers={"Referer": "http://testserver/approvals"})

    page = response.content.decode()
    assert response.status_code == 404
    assert f"<code>Call {call}</code>" in page
    assert f"It was looked for in {tenant.name} only" in page
    assert f'<a class="btn primary" href="{reverse("invocations")}">' in page
    assert '<a class="btn" href="http://testserver/approvals">' in page
    assert "Try again" not in page
    elsewhere = operator.client().get("/nobody-lives-here", headers={"Referer": "https://elsewhere.example/"})
    assert "<code>/nobody-lives-here</code>" in elsewhere.content.decode()
    assert "elsewhere.example" not in elsewhere.content.decode()
