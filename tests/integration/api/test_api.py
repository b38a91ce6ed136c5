"""The API: do the API's lists, documents and headers keep what they promise?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from django.test import Client
from drf_spectacular.validation import validate_schema

from kernel.http.pagination import PAGE_SIZE
from registry.models import Installation, Tool
from tests.conftest import make_caller
from tests.support.manifests import manifest
from tests.support.routes import api_routes
from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
WHOLE_VIEW_ONLY = {"input_schema", "output_schema", "manifest_digest", "build_digest"}


def ids(answer: Any) -> set[str]:
    assert answer.status_code == 200, answer.json()
    return {tool["id"].removeprefix("sample.tools.") for tool in answer.json()["data"]["tools"]}


@pytest.fixture
def catalogue_of_tools(enable: Callable[..., Tool], submit: Callable[..., Any]) -> None:
    enable("echo", tags=["sample", "first"], description="Says it again.")
    enable("plans", side_effect="Read", capabilities={"fs": [{"path": "/data", "actions": ["read"]}]})
    enable("raises", safety_class="Medium")
    submit("write", side_effect="Write", idempotency="keyed")


@pytest.mark.req("TOOLS-11")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", {"echo", "plans", "raises"}),
        ("?q=AGAIN", {"echo"}),
        ("?q=plans", {"plans"}),
        ("?group=sample", {"echo", "plans", "raises"}),
        ("?group=sam", set()),
        ("?tag=first", {"echo"}),
        ("?tag=fir", set()),
        ("?safety_class=Medium", {"raises"}),
        ("?side_effect=Read", {"plans"}),
        ("?capability=fs", {"plans"}),
        ("?capability=net", set()),
        ("?state=registered", {"write"}),
        ("?state=paused", set()),
        ("?tag=sample&side_effect=Read", {"plans"}),
        ("?q=%25", set()),
        ("?q=_", set()),
        ("?tag=%22", set()),
    ],
)
def test_tools_are_found_by_every_filter(query: str, found: set[str], catalogue_of_tools: None, caller: Caller) -> None:
    assert ids(caller.get(f"/tools{query}")) == found


@pytest.mark.req("TOOLS-12")
def test_a_model_sees_names_descriptions_and_inputs_of_what_was_granted_and_nothing_else(
    catalogue_of_tools: None, caller: Caller, grant: Callable[..., Any]
) -> None:
    grant("sample.tools.echo | tag:nothing")

    answer = caller.get("/tools?view=llm")

    assert ids_of(answer) == {"sample.tools.echo"}
    assert {frozenset(tool) for tool in answer.json()["data"]["tools"]} == {
        frozenset({"name", "description", "input_schema"})
    }


def ids_of(answer: Any) -> set[str]:
    return {tool["name"] for tool in answer.json()["data"]["tools"]}


def test_a_filter_that_does_not_exist_is_said(caller: Caller) -> None:
    answer = caller.get("/tools?colour=red")

    assert (answer.status_code, answer.json()["error"]["reason"]) == (422, "SCHEMA.VALIDATION_FAILED")
    assert "colour" in answer.json()["detail"]


@pytest.mark.req("TOOLS-11")
def test_a_list_continues_without_skipping_or_repeating(
    enable: Callable[..., Tool], caller: Caller, foreign_caller: Caller
) -> None:
    tool = enable()
    Tool.objects.bulk_create(
        Tool(tenant=tool.tenant, name=f"sample.many.t{number}", state="enabled", current=tool.current)
        for number in range(PAGE_SIZE + 5)
    )
    Installation.objects.bulk_create(
        Installation(tenant=tool.tenant, tool=each, name=each.name, version=tool.current, changed_by="usr_1")
        for each in Tool.objects.filter(name__startswith="sample.many.")
    )

    first = caller.get("/tools").json()["data"]
    second = caller.get(f"/tools?after={first['next']}").json()["data"]

    assert len(first["tools"]) == PAGE_SIZE
    assert second["next"] is None
    names = [each["id"] for each in first["tools"] + second["tools"]]
    assert len(names) == len(set(names)) == PAGE_SIZE + 6
    assert foreign_caller.get("/tools").json()["data"]["tools"] == []


@pytest.mark.parametrize("path", ["/tools", "/grants", "/consents"])
@pytest.mark.parametrize("after", ["nonsense", "inv_" + "0" * 26, "ins_" + "z" * 26])
def test_a_cursor_that_no_list_gave_out_is_refused(path: str, after: str, caller: Caller) -> None:
    answer = caller.get(f"{path}?after={after}")

    assert (answer.status_code, answer.json()["error"]["reason"]) == (422, "SCHEMA.VALIDATION_FAILED")


@pytest.mark.req("TOOLS-2", "TOOLS-21")
def test_asking_for_the_head_of_an_answer_needs_the_scope_of_the_answer(operator: Person) -> None:
    other = make_caller(operator.by, "other", scopes=("invocations:read",))

    assert Client().head("/api/v1/tools", headers=other.headers()).status_code == 403
    assert Client().head("/api/v1/tools", headers=make_caller(operator.by).headers()).status_code == 200


def test_one_tool_is_shown_with_its_schemas_and_without_the_inside(enable: Callable[..., Tool], caller: Caller) -> None:
    enable()

    data = caller.get("/tools/sample.tools.echo").json()["data"]

    assert data["input_schema"] == manifest()["input_schema"]
    assert set(data) >= WHOLE_VIEW_ONLY
    assert data["urn"] == "soul:tool:sample.tools.echo"
    listed = caller.get("/tools").json()["data"]["tools"][0]
    for view in (data, listed):
        assert not {"implementation", "scopes", "capabilities", "consent", "limits"} & set(view)
    assert not WHOLE_VIEW_ONLY & set(listed)


def test_a_version_can_be_registered_over_rest(caller: Caller) -> None:
    answer = caller.post("/tools", manifest())

    assert answer.status_code == 201, answer.json()
    assert answer.json()["data"]["review_state"] == "submitted"
    assert answer.headers["Location"] == "/api/v1/tools/sample.tools.echo"


def test_the_manifest_schema_is_published_as_it_is() -> None:
    answer = Client().get("/api/v1/manifest-schema")

    assert answer.headers["Content-Type"] == "application/schema+json"
    assert answer.json() == manifest_schema()
    jsonschema.Draft202012Validator.check_schema(answer.json())


def test_the_openapi_document_is_valid_and_holds_every_endpoint() -> None:
    document = Client().get("/api/v1/openapi.json", headers={"Accept": "application/json"}).json()

    validate_schema(document)  # type: ignore[no-untyped-call]
    described = {
        (path, method) for path, item in document["paths"].items() for method in item if method in ("get", "post")
    }
    # Google's addresses are there below two versions, and stand in the document below one, which says so.
    described |= {(path.replace("/v1beta/models/", "/v1/models/", 1), method) for path, method in described}
    expected = set()
    for route in api_routes():
        if route.api_class is not None and route.name != "api_openapi":
            path = "/" + route.path
            for name in route.takes:
                start = path.index("<")
                path = f"{path[:start]}{{{name}}}{path[path.index('>') + 1 :]}"
            expected |= {(path, method) for method in ("get", "post") if hasattr(route.api_class, method)}
    assert expected <= described
    operations = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(operations) == len(set(operations))


def test_answers_carry_an_id_that_a_person_can_quote(caller: Caller) -> None:
    given = caller.get("/tools", **{"X-Request-ID": "my-request-42"})
    harmful = caller.get("/tools", **{"X-Request-ID": "<script>alert(1)</script>"})

    assert given.headers["X-Request-ID"] == "my-request-42"
    assert "script" not in harmful.headers["X-Request-ID"]


def test_the_process_says_that_it_is_alive_without_asking_anybody(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(0):
        assert Client().get("/healthz").json() == {"ok": True}
