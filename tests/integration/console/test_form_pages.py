"""Form pages: does a page that is drawn at the address of a form, which was not accepted or has something to show, lead on?"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.db import transaction
from django.urls import Resolver404, resolve

from access.roles import Role
from kernel.http import pagination
from kernel.http.pagination import Excerpt
from tests.conftest import make_person
from tests.support.request_bodies import forms
from tests.support.request_preparations import prepare
from tests.support.routes import Route, console_routes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet
    from django.test import Client

    from tests.support.calls import Bell
    from tests.support.populated_tenant import Things

pytestmark = pytest.mark.django_db
FOLLOWED = re.compile(r'\s(?:href|hx-get|data-copy)="([^"]*)"')
FORMS = [route for route in console_routes() if route.needs and "POST" in route.methods]


@pytest.fixture
def things(populated: Things, bell: Bell) -> Things:
    return populated


def cut_all_lists(queryset: QuerySet[Any], most: int) -> Excerpt[Any]:
    """As if each list had more rows than are shown."""
    rows = list(queryset[:most])
    return Excerpt(rows=rows, is_cut=bool(rows))


def list_closed(page: str, address: str) -> Iterator[str]:
    """What the page leads to, or asks for by itself, that takes nothing but a form."""
    for each in map(unescape, FOLLOWED.findall(page)):
        parts = urlsplit(each)
        if parts.scheme or parts.netloc or each.startswith("#"):
            continue
        try:
            match = resolve(parts.path or address)
        except Resolver404:  # files
            continue
        methods = Route(match.url_name or "", "", match.func, ()).methods
        if methods and "GET" not in methods:
            yield each


def test_pages_at_the_address_of_a_form_lead_to_addresses_that_can_be_opened(
    things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pagination, "fetch_excerpt", cut_all_lists)
    person = make_person(things.tenant, "owen", *Role)
    client, bodies, drawn, closed = person.client(), forms(things), set(), {}

    for route in FORMS:
        for sent in ({}, bodies[route.name]):
            page = send_form(client, route, things, sent, person.by)
            if page is None:
                continue
            drawn.add(route.name)
            if found := sorted(set(list_closed(page, things.url(route)))):
                closed[route.name] = found

    assert closed == {}
    assert {"agent_state", "key_revoke", "issuer_subject_add", "review_decide"} <= drawn


def send_form(client: Client, route: Route, things: Things, sent: dict[str, Any], by: Any) -> str | None:
    """The page that is drawn there; None where it leads elsewhere. Nothing stays of what it did."""
    with transaction.atomic():
        prepare(route.name, things, by)
        answer = client.post(things.url(route), sent)
        page = answer.content.decode() if answer.status_code in (200, 422) else None
        transaction.set_rollback(True)
    return page


@pytest.mark.parametrize("name", ["grants/revoke", "consents/revoke"])
def test_who_chose_nothing_is_not_asked_to_revoke_it(things: Things, name: str) -> None:
    page = make_person(things.tenant, "owen", *Role).client().get(f"/{name}").content.decode()

    assert "was chosen" in page
    assert re.search(r"<h1>\s*Revoke several (grants|consents)\s*</h1>", page)
    assert not re.search(r"Revoke \d", page)
