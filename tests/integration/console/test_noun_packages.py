"""Noun packages: does a console page touch one folder, and a REST resource too? Each is added here as the package of a new noun.

It lies outside the repository, and ``access`` finds it as one of its own; no other file knows of it.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.urls import clear_url_caches, reverse
from drf_spectacular.generators import SchemaGenerator

import access
import toolhub.urls
from access.roles import ROLE_PERMISSIONS, Role
from tests.conftest import make_caller, make_person
from tests.support.routes import api_routes, console_routes
from toolhub.access_tables import list_access_rows
from toolhub.addresses import load_url_modules
from toolhub.packages import find_template_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db

PAGE = {
    "__init__.py": "",
    "pages.py": """
from django.views.decorators.http import require_GET

from kernel.http.console import needs, render_page


@require_GET
@needs("agents.view")
def order_list(request):
    return render_page(request, "orders/list.html", {"section": "orders"})
""",
    "urls.py": """
from django.urls import path

from access.orders import pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="orders",
        label="Orders of the shop",
        icon="package",
        address="orders",
        permission="agents.view",
        job=Job.AGENTS,
        order=25,
    ),
]

PAGES = [path("orders", pages.order_list, name="orders")]

ACCESS = '''
[console]

GET orders agents.view HOPRA-
'''
""",
    "templates/orders/list.html": '{% extends "base.html" %}{% block main %}<h1>No order waits.</h1>{% endblock %}',
}
RESOURCE = {
    "__init__.py": "",
    "api.py": '''
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from kernel.http.base_serializers import build_envelope_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope


class OrdersSerializer(serializers.Serializer):
    waiting = serializers.IntegerField()


class OrderListView(Endpoint):
    """The orders that wait."""

    required_scope = "agents:manage"

    @extend_schema(operation_id="list_orders", responses={200: build_envelope_serializer("Orders", OrdersSerializer())})
    def get(self, request):
        return Response(ResponseEnvelope(data={"waiting": 0}).to_json())
''',
    "urls.py": """
from django.urls import path

from access.orders import api

API = [path("orders", api.OrderListView.as_view(), name="api_orders")]

ACCESS = '''
[api]

GET api_orders agents:manage
'''
""",
}


def read_addresses_anew() -> None:
    load_url_modules.cache_clear()
    importlib.reload(toolhub.urls)
    clear_url_caches()


@pytest.fixture
def add_package(tmp_path: Path, settings: Any) -> Iterator[Callable[[dict[str, str]], None]]:
    """``add_package(files)``: the process as it would be if it had started with the package ``access.orders``."""

    def add(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / "orders" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        access.__path__.append(str(tmp_path))
        importlib.invalidate_caches()
        read_addresses_anew()
        engine = settings.TEMPLATES[0]
        settings.TEMPLATES = [engine | {"DIRS": [engine["DIRS"][0], *find_template_folders()]}]

    yield add

    access.__path__.remove(str(tmp_path))
    for name in [name for name in sys.modules if name.startswith("access.orders")]:
        del sys.modules[name]
    del access.orders  # type: ignore[attr-defined]
    read_addresses_anew()


def test_a_console_page_with_its_menu_entry_and_permission_is_one_folder(
    add_package: Callable[[dict[str, str]], None], tenant: Tenant, operator: Person, developer: Person
) -> None:
    add_package(PAGE)
    assert len([name for name, text in PAGE.items() if text]) == 3

    page = operator.client().get("/orders")
    assert "No order waits." in page.content.decode()
    jobs = {item["key"]: item for group in page.context["nav"] for item in group["items"]}
    tabs = [each["label"] for each in jobs["agents"]["pages"]]
    assert tabs == ["Agents & keys", "Grants", "Orders of the shop", "Connected programs"]
    assert reverse("orders") in page.content.decode()

    assert developer.client().get("/orders").status_code == 403
    assert "Orders of the shop" not in developer.client().get("/").content.decode()
    assert Client().get("/orders").headers["Location"].startswith("/sign-in")

    known = {(method, route.name): route.needs for route in console_routes() if route.needs for method in route.methods}
    rows = {(row.method, row.route): row.needed for row in list_access_rows() if row.section == "console"}
    assert rows[("GET", "orders")] == "agents.view"
    assert rows == known


def test_a_rest_resource_with_its_scope_is_one_folder(
    add_package: Callable[[dict[str, str]], None], operator: Person
) -> None:
    add_package(RESOURCE)
    may = make_caller(operator.by, "clerk", ("agents:manage",))
    may_not = make_caller(operator.by, "guest", ("tools:read",))

    assert may.get("/orders").json()["data"] == {"waiting": 0}
    assert may_not.get("/orders").json()["error"]["details"] == {"missing": "agents:manage"}
    assert Client().get("/api/v1/orders").status_code == 401

    document: Any = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    assert document["paths"]["/api/v1/orders"]["get"]["operationId"] == "list_orders"

    scopes = {
        (method, route.name): route.scope(method)
        for route in api_routes()
        if hasattr(route.api_class, "required_scope")
        for method in route.methods
    }
    assert {(row.method, row.route): row.needed for row in list_access_rows() if row.section == "api"} == scopes


@pytest.mark.req("CARD-3", "TOOLS-15")
@pytest.mark.parametrize(
    ("files", "written", "instead"),
    [
        (PAGE, "GET orders agents.view HOPRA-", ""),
        (PAGE, "agents.view HOPRA-\n", "agents.manage HOP---\n"),
        (PAGE, "HOPRA-", "HOPRAD"),
        (PAGE, "GET orders", "GET order"),
        (PAGE, "HOPRA-\n", "HOPRA-\nGET order agents.view HOPRA-\n"),
        (RESOURCE, "GET api_orders agents:manage", ""),
        (RESOURCE, "api_orders agents:manage", "api_orders tools:read"),
        (RESOURCE, "GET api_orders", "POST api_orders"),
        (RESOURCE, "agents:manage\n", "agents:manage\nPOST api_orders agents:manage\n"),
        (RESOURCE, "agents:manage\n", "agents:manage\n\n[people]\n\nGET api_orders agents.view HOPRA-\n"),
    ],
)
def test_no_address_is_served_whose_line_and_view_differ(
    add_package: Callable[[dict[str, str]], None], files: dict[str, str], written: str, instead: str
) -> None:
    assert files["urls.py"].count(written) == 1

    with pytest.raises(ImproperlyConfigured, match="order"):
        add_package(files | {"urls.py": files["urls.py"].replace(written, instead)})


VIEW, LINE = '@needs("agents.view")\n', "GET orders agents.view HOPRA-\n"


@pytest.mark.req("CARD-3", "TOOLS-15")
@pytest.mark.parametrize(
    ("files", "name", "written", "instead"),
    [
        (PAGE, "pages.py", VIEW, '@needs("tools.view")\n'),
        (PAGE, "pages.py", VIEW, ""),
        (RESOURCE, "api.py", '"agents:manage"', '"tools:read"'),
        (RESOURCE, "api.py", '"agents:manage"', '"agents:manage"\n    required_permission = "agents.view"'),
    ],
)
def test_no_address_is_served_whose_view_was_changed_alone(
    add_package: Callable[[dict[str, str]], None], files: dict[str, str], name: str, written: str, instead: str
) -> None:
    assert files[name].count(written) == 1

    with pytest.raises(ImproperlyConfigured, match="order"):
        add_package(files | {name: files[name].replace(written, instead)})


@pytest.mark.req("CARD-3", "TOOLS-15")
def test_no_address_is_served_whose_role_was_changed_alone(
    add_package: Callable[[dict[str, str]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a permission that one more role has."""
    held = ROLE_PERMISSIONS[Role.DEVELOPER] | {"agents.view"}
    said = "GET orders is for HOPRA-, and agents.view is held by HOPRAD"

    with monkeypatch.context() as changed, pytest.raises(ImproperlyConfigured, match=said):
        changed.setitem(ROLE_PERMISSIONS, Role.DEVELOPER, held)
        add_package(PAGE)


@pytest.mark.req("CARD-3", "TOOLS-15")
def test_a_page_is_served_without_a_line_only_if_it_says_that_it_is_public(
    add_package: Callable[[dict[str, str]], None],
) -> None:
    assert (PAGE["pages.py"].count(VIEW), PAGE["urls.py"].count(LINE)) == (1, 1)
    unsaid = PAGE | {"pages.py": PAGE["pages.py"].replace(VIEW, ""), "urls.py": PAGE["urls.py"].replace(LINE, "")}

    with pytest.raises(ImproperlyConfigured, match="orders is a page that neither needs a permission nor is public"):
        add_package(unsaid)


def test_nothing_of_an_added_package_is_left(tenant: Tenant) -> None:
    """Other tests read the addresses too."""
    owner = make_person(tenant, "olga", Role.OWNER)

    assert owner.client().get("/orders").status_code == 404
    assert "/api/v1/orders" not in {f"/{route.path}" for route in api_routes()}
