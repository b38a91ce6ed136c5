"""People list: is everybody of a tenant on one of its pages, and found by name and by role?"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest
from django.urls import reverse

from access.members import services as members
from access.models import Tenant
from access.roles import Role
from kernel.http.pagination import PAGE_SIZE
from kernel.ids import encode_user
from kernel.principal import Principal
from tests.conftest import make_person

if TYPE_CHECKING:
    from django.test import Client

    from tests.conftest import Person

pytestmark = pytest.mark.django_db
NEXT = re.compile(r'<a class="btn" rel="next" href="([^"]+)"')
MANY = PAGE_SIZE + 3


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "otto", Role.OWNER)


def read_pages(client: Client, address: str) -> list[str]:
    """One after another, as links lead on."""
    pages, url = [], address
    while url:
        answer = client.get(url)
        assert answer.status_code == 200
        pages.append(answer.content.decode())
        found = NEXT.search(pages[-1])
        url = urljoin(address, unescape(found[1])) if found else ""
    return pages


def list_people(page: str) -> list[str]:
    return re.findall(r'data-row href="/people/(usr_\d+)"', page)


@pytest.mark.req("CARD-3")
def test_everybody_is_on_one_of_the_pages_by_name(tenant: Tenant, owner: Person) -> None:
    many = [make_person(tenant, f"pat-{number:03}", Role.DEVELOPER, Role.AUDITOR) for number in range(MANY)]

    pages = read_pages(owner.client(), reverse("people"))

    assert [len(list_people(page)) for page in pages] == [PAGE_SIZE, MANY + 1 - PAGE_SIZE]
    listed = [person for page in pages for person in list_people(page)]
    assert listed == [encode_user(person.user.pk) for person in (owner, *many)]
    assert "To the beginning" in pages[1]


def test_people_are_found_by_a_part_of_a_name_and_by_role(tenant: Tenant, owner: Person) -> None:
    anna, bert = make_person(tenant, "anna.ames", Role.AUDITOR), make_person(tenant, "bert.ames", Role.DEVELOPER)
    anna.user.first_name = "Anneliese"
    anna.user.save(update_fields=["first_name"])

    def found(**asked: str) -> list[str]:
        return list_people(owner.client().get(reverse("people"), asked).content.decode())

    assert found(q="ames") == [encode_user(each.user.pk) for each in (anna, bert)]
    assert found(q="neliese") == [encode_user(anna.user.pk)]
    assert found(q="ames", role="developer") == [encode_user(bert.user.pk)]
    assert found(q="nobody") == []


def test_a_role_that_is_none_is_refused_in_words(owner: Person) -> None:
    answer = owner.client().get(reverse("people"), {"role": "king"})

    assert answer.status_code == 422
    assert "There is no such role to filter by." in answer.content.decode()


def test_people_of_another_tenant_are_on_no_page(
    tenant: Tenant, foreign_tenant: Tenant, owner: Person, operator: Person
) -> None:
    stranger = make_person(foreign_tenant, "zoe", Role.OWNER)

    listed = [person for page in read_pages(owner.client(), reverse("people")) for person in list_people(page)]

    assert encode_user(operator.user.pk) in listed
    assert encode_user(stranger.user.pk) not in listed


def test_every_tenant_is_on_one_of_the_pages(tenant: Tenant, owner: Person) -> None:
    members.make_hub_owner(user=owner.user, by=Principal.system("test", tenant_id=tenant.pk))
    made = [Tenant.objects.create(slug=f"place-{number:03}", name=f"Place {number}") for number in range(MANY)]

    pages = read_pages(owner.client(), reverse("tenants"))

    listed = [slug for page in pages for slug in re.findall(r'<td class="mono">([a-z0-9-]+)</td>', page)]
    assert sorted(listed) == sorted(Tenant.objects.values_list("slug", flat=True))
    assert {each.slug for each in made} <= set(listed)
