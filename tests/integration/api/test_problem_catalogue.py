"""Problem catalogue: does whoever meets a problem find out what it means, with a program and with a browser?"""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from django.test import Client

from kernel.http.exception_handlers import SERVED_PREFIXES
from kernel.problems import PlatformCode, Problem, collect_problem_classes

pytestmark = pytest.mark.django_db
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.req("SPEC-6", "TOOLS-24")
def test_the_catalogue_lists_every_problem_with_a_code_of_the_closed_set() -> None:
    errors = Client().get("/api/v1/errors").json()["data"]["errors"]

    assert [error["reason"] for error in errors] == [cls.reason for cls in collect_problem_classes()]
    assert {error["code"] for error in errors} <= set(PlatformCode)


@pytest.mark.req("TOOLS-24")
@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/problem+json, */*;q=0.1"])
@pytest.mark.parametrize("cls", collect_problem_classes(), ids=lambda cls: cls.reason)
def test_the_type_of_an_answer_leads_a_program_to_its_problem(cls: type[Problem], accept: str) -> None:
    found = Client().get(f"/api/v1/errors/{cls.reason}", headers={"Accept": accept})

    data: dict[str, Any] = found.json()["data"]
    assert (data["reason"], data["status"], data["code"]) == (cls.reason, cls.status, cls.code)
    assert (data["title"], data["cause"], data["cure"]) == (cls.title(), cls.cause, cls.cure)
    assert data["example"]["type"].endswith(f"/api/v1/errors/{cls.reason}")
    assert data["example"]["error"]["retryable"] == cls.retryable


@pytest.mark.req("TOOLS-24")
@pytest.mark.parametrize("cls", collect_problem_classes(), ids=lambda cls: cls.reason)
def test_the_type_of_an_answer_leads_a_browser_to_its_page(cls: type[Problem]) -> None:
    answer = Client().get(f"/api/v1/errors/{cls.reason}", headers=BROWSER, follow=True)

    assert answer.redirect_chain == [(f"/errors/{cls.reason}", 302)]
    context = answer.context
    assert (context["problem"], answer.status_code) == (cls, 200)
    for text in (cls.title(), cls.cause, cls.cure):
        assert text in context["problem"].title() + context["problem"].cause + context["problem"].cure
    assert f"<code>{cls.code}</code>" in answer.content.decode()
    assert f"<code>{cls.status}</code>" in answer.content.decode()


@pytest.mark.req("TOOLS-24")
def test_the_page_of_all_problems_leads_to_each() -> None:
    page = Client().get("/errors").content.decode()

    assert [cls.reason for cls in collect_problem_classes() if f'href="/errors/{cls.reason}"' not in page] == []


@pytest.mark.req("TOOLS-24", "SPEC-6")
def test_the_openapi_document_has_an_example_of_every_problem_where_it_can_come() -> None:
    document = Client().get("/api/v1/openapi.json").json()
    answers = document["components"]["responses"]
    schema = {"components": document["components"], "$ref": "#/components/schemas/Problem"}

    shown = {
        reason
        for item in document["paths"].values()
        for operation in item.values()
        for answer in operation["responses"].values()
        if "$ref" in answer
        for content in answers[answer["$ref"].rpartition("/")[2]]["content"].values()
        for reason in content.get("examples", ())  # a format of others has its own, without the hub's reasons
    }

    never = {"REQUEST.METHOD_NOT_ALLOWED"}  # no operation answers it: it is about methods that are none
    assert shown == {cls.reason for cls in collect_problem_classes()} - never
    for cls in collect_problem_classes():
        value = document["components"]["examples"][cls.reason]["value"]
        known = {
            name: value[name] for name in value if value[name] is not None
        }  # `nullable` is OpenAPI's, not JSON Schema's
        jsonschema.validate(known | {"data": {}, "ttl_seconds": 0}, schema)


@pytest.mark.req("TOOLS-24")
def test_each_operation_says_which_problems_it_may_answer_with() -> None:
    document = Client().get("/api/v1/openapi.json").json()

    for path, item in document["paths"].items():
        for method, operation in item.items():
            statuses = set(operation["responses"])
            assert statuses >= {"400", "401", "403", "406", "500", "503"}, (method, path)
            # Formats of others say 400 where the hub says 422.
            refused = {"413", "415"} if path.startswith(SERVED_PREFIXES) else {"413", "415", "422"}
            assert ("requestBody" not in operation) or statuses >= refused, (method, path)
            assert ("{" not in path) or "404" in statuses, (method, path)
    run = set(document["paths"]["/api/v1/tools/{tool_id}/invoke"]["post"]["responses"])
    assert run >= {"200", "202", "410", "429", "502", "504"}


def test_pages_of_problems_are_in_the_readers_language() -> None:
    english, chinese = (
        Client().get("/errors/AUTH.NO_GRANT", headers={"Accept-Language": language}).content.decode()
        for language in ("en", "zh-hans")
    )

    assert '<html lang="en"' in english
    assert '<html lang="zh-Hans"' in chinese


@pytest.mark.parametrize("path", ["/api/v1/errors/NOTHING", "/errors/NOTHING"])
def test_what_is_no_problem_is_not_found(path: str) -> None:
    assert Client().get(path).status_code == 404


def test_a_page_of_a_problem_links_what_it_means() -> None:
    answer = Client().get("/errors/NOTHING")

    assert 'href="/errors/RESOURCE.NOT_FOUND"' in answer.content.decode()
