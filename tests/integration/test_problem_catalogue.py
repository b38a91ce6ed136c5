"""Does whoever meets a problem find out what it means, with a program and with a browser?"""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from toolhub.kernel.problems import PlatformCode, Problem, catalogue

pytestmark = pytest.mark.django_db
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.mark.req("SPEC-6", "TOOLS-24")
def test_the_catalogue_lists_every_problem_with_a_code_of_the_closed_set() -> None:
    errors = Client().get("/api/v1/errors").json()["data"]["errors"]

    assert [error["reason"] for error in errors] == [cls.reason for cls in catalogue()]
    assert {error["code"] for error in errors} <= set(PlatformCode)


@pytest.mark.req("TOOLS-24")
@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/problem+json, */*;q=0.1"])
@pytest.mark.parametrize("cls", catalogue(), ids=lambda cls: cls.reason)
def test_the_type_of_an_answer_leads_a_program_to_its_problem(cls: type[Problem], accept: str) -> None:
    found = Client().get(f"/api/v1/errors/{cls.reason}", headers={"Accept": accept})

    data: dict[str, Any] = found.json()["data"]
    assert (data["reason"], data["status"], data["code"]) == (cls.reason, cls.status, cls.code)
    assert (data["title"], data["cause"], data["cure"]) == (cls.title(), cls.cause, cls.cure)
    assert data["example"]["type"].endswith(f"/api/v1/errors/{cls.reason}")
    assert data["example"]["error"]["retryable"] == cls.retryable


@pytest.mark.req("TOOLS-24")
@pytest.mark.parametrize("cls", catalogue(), ids=lambda cls: cls.reason)
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

    assert [cls.reason for cls in catalogue() if f'href="/errors/{cls.reason}"' not in page] == []


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
