"""Query parameters: is every endpoint asked only what it understands, and does every list go on?

The addresses are read from the URL configuration and the parameters from the OpenAPI document, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access import services as access
from access.roles import SCOPES
from kernel.http.endpoints import Endpoint
from kernel.http.pagination import MAX_LIMIT
from tests.support.routes import METHODS, SERVED_PREFIXES, api_routes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Caller
    from tests.support.calls import Bell
    from tests.support.populated_tenant import Things
    from tests.support.routes import Route

pytestmark = pytest.mark.django_db
# RFC 6749 §3.2: "The authorization server MUST ignore unrecognized request parameters."
IGNORES = {"api_oauth_token"}
UNKNOWN = "no_such_parameter"


@pytest.fixture
def things(populated: Things, bell: Bell) -> Things:
    return populated


@pytest.fixture
def key(things: Things) -> dict[str, str]:
    """Of an agent that may do all that keys may do."""
    _, key = access.create_key(agent=things.robot.agent, scopes=list(SCOPES), by=things.people["owner"].by)
    return {"Authorization": f"Bearer {key}"}


def ask(things: Things, key: dict[str, str], route: Route, method: str, query: str) -> Any:
    """By key, or by the session of a person where only people may."""
    address = f"{things.url(route)}?{query}"
    people_only = hasattr(route.api_class, "required_scope") and route.scope(method) == "-"
    client = things.people["owner"].client() if people_only else Client(headers=key)
    return client.generic(method, address, b"{}", content_type="application/json")


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/v1/openapi.json").json()
    return found


def queried() -> Iterator[tuple[Route, dict[str, Any], str]]:
    """Every address that can be read, with the query parameters that the document lists for it, and the operation's name."""
    paths = document()["paths"]
    for route in api_routes():
        item = paths.get("/" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route.path), {})
        if operation := item.get("get"):
            listed = {each["name"]: each for each in operation.get("parameters", []) if each.get("in") == "query"}
            yield route, listed, operation["operationId"]


@pytest.mark.req("TOOLS-24", "SPEC-6")
def test_no_address_ignores_a_query_parameter_that_it_does_not_know(things: Things, key: dict[str, str]) -> None:
    wrong = {}

    for route in api_routes():
        for method in route.methods or ("GET",):
            if route.name in IGNORES:
                continue
            answer = ask(things, key, route, method, f"{UNKNOWN}=1")
            if route.path.startswith(SERVED_PREFIXES):  # errors in the shapes of others
                if (answer.status_code, answer.headers["X-Hub-Reason"]) != (400, "SCHEMA.VALIDATION_FAILED"):
                    wrong[f"{method} {route.name}"] = (answer.status_code, answer.content[:200])
                assert UNKNOWN in answer.json()["error"]["message"]
                continue
            error = answer.json()["error"] if answer.status_code == 422 else {}
            if UNKNOWN not in error.get("message", "") or error["details"]["findings"][0]["pointer"] != f"/{UNKNOWN}":
                wrong[f"{method} {route.name}"] = (answer.status_code, answer.content[:200])

    assert wrong == {}


def test_every_view_of_the_api_is_an_endpoint() -> None:
    assert [route.name for route in api_routes() if route.api_class and not issubclass(route.api_class, Endpoint)] == []
    assert set(METHODS) >= {"get", "post", "put", "patch", "delete"}


def test_the_document_lists_the_query_parameters_that_are_read() -> None:
    wrong = {
        route.name: (sorted(listed), sorted(route.api_class.query().fields))
        for route, listed, _ in queried()
        if set(listed) != set(route.api_class.query().fields)
    }

    assert wrong == {}


@pytest.mark.req("SPEC-6")
def test_a_value_that_is_not_one_of_those_listed_is_refused_with_those_that_are(
    things: Things, key: dict[str, str]
) -> None:
    chosen = [(route, each) for route, listed, _ in queried() for each in listed.values() if "enum" in each["schema"]]
    wrong = {}

    for route, parameter in chosen:
        answer = ask(things, key, route, "GET", f"{parameter['name']}=nonsense")
        said = answer.content.decode()
        allowed = [each for each in parameter["schema"]["enum"] if str(each) not in said]
        if answer.status_code != 422 or parameter["name"] not in answer.json()["error"]["message"] or allowed:
            wrong[f"{route.name} {parameter['name']}"] = (answer.status_code, said[:300])

    assert len(chosen) > 10
    assert wrong == {}


def lists() -> list[tuple[Route, dict[str, Any]]]:
    return [(route, listed) for route, listed, name in queried() if name.startswith(("list_", "search_"))]


def strip_links(rows: list[Any]) -> list[Any]:
    """Without links that are signed anew in each second."""
    return [{name: value for name, value in row.items() if name != "url"} for row in rows if isinstance(row, dict)]


@pytest.mark.req("TOOLS-11")
def test_every_list_is_read_page_by_page_without_losing_a_row(things: Things, key: dict[str, str]) -> None:
    wrong = {}
    for route, listed in lists():
        if route.path.startswith(SERVED_PREFIXES):  # lists of others have no pages
            continue
        if not {"after", "limit"} <= set(listed):
            wrong[route.name] = str(sorted(listed))
            continue
        whole = ask(things, key, route, "GET", f"limit={MAX_LIMIT}").json()["data"]
        [name] = [name for name, value in whole.items() if isinstance(value, list)]
        after, found = "", []
        for _ in range(len(whole[name]) + 1):
            page = ask(things, key, route, "GET", f"limit=1&after={after}" if after else "limit=1").json()["data"]
            found += page[name]
            after = page["next"]
            if not after:
                break
        if strip_links(found) != strip_links(whole[name]) and route.name != "api_facts":  # reading facts leaves facts
            wrong[route.name] = f"{len(found)} of {len(whole[name])}"

    assert len(lists()) > 25
    assert wrong == {}


@pytest.mark.req("TOOLS-11")
@pytest.mark.parametrize("after", ["nonsense", "model.nonsense", "xyz_" + "0" * 26, "../.."])
def test_a_cursor_that_cannot_be_one_of_its_list_is_refused_by_every_list(
    after: str, things: Things, key: dict[str, str]
) -> None:
    wrong = {}
    for route, listed in lists():
        if "after" not in listed:
            continue
        answer = ask(things, key, route, "GET", f"after={after}")
        findings = answer.json()["error"]["details"].get("findings", []) if answer.status_code == 422 else []
        if [each["pointer"] for each in findings] != ["/after"]:
            wrong[route.name] = (answer.status_code, answer.content[:200])

    assert wrong == {}


def test_no_answer_is_a_bare_list() -> None:
    found, schemas = [], document()["components"]["schemas"]
    for name, schema in schemas.items():
        if name.endswith("Envelope") and schema["properties"].get("data", {}).get("type") == "array":
            found.append(name)

    assert found == []


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        f"limit={MAX_LIMIT + 1}",
        "limit=x",
        "limit=١",
        "limit=1_0",
        "limit=1&limit=2",
        "limit=",
        "after=",
        "after=nonsense",
    ],
)
def test_a_page_that_cannot_be_is_refused(query: str, caller: Caller) -> None:
    answer = caller.get(f"/tools?{query}" if "201" not in query else f"/consents?{query}")

    assert answer.status_code == 422
    assert answer.json()["error"]["details"]["findings"][0]["pointer"] == f"/{query.partition('=')[0]}"
