"""Call search: does the list of calls find what its query says, page by page, and nobody else's calls?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from invocations.call_search import api
from tests.conftest import make_caller
from tests.support.calls import assert_problem
from tests.support.statements import run_endless_statement

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
OWN = ("invocations:create", "invocations:read")


@pytest.fixture
def quiet(operator: Person) -> Caller:
    """An agent that sees its own calls only."""
    return make_caller(operator.by, "quiet", OWN)


@pytest.fixture
def made(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    caller: Caller,
    quiet: Caller,
) -> dict[str, str]:
    """Calls by what became of them → their ids: two agents, one granted, one refused, one that nobody has worked on."""
    enable()
    grant()
    answers = {
        "good": caller.invoke(ECHO, {"text": "x"}, request_id="order-0001", user_id="ann 7"),
        "invalid": caller.invoke(ECHO, {"text": 1}, request_id="order-0002"),
        "refused": quiet.invoke(ECHO, {"text": "x"}, request_id="order-0003"),
    }
    bell.answers = False
    answers["queued"] = caller.invoke(ECHO, {"text": "x"}, {"Prefer": "respond-async"}, request_id="order-0004")
    return {name: answer.json()["call"]["call_id"] for name, answer in answers.items()}


def find(who: Caller, q: str = "", **asked: Any) -> list[str]:
    answer = who.get(f"/invocations?{urlencode(({'q': q} if q else {}) | asked)}")
    assert answer.status_code == 200, answer.content
    return [each["call_id"] for each in answer.json()["data"]["invocations"]]


QUERIES = {
    "": ["queued", "refused", "invalid", "good"],
    "tool:sample.*": ["queued", "refused", "invalid", "good"],
    "tool:other.*": [],
    "echo": ["queued", "refused", "invalid", "good"],
    "ech": [],
    "ech*": ["queued", "refused", "invalid", "good"],
    "order-0002": ["invalid"],
    "agent:quiet": ["refused"],
    "-agent:quiet": ["queued", "invalid", "good"],
    "outcome:succeeded": ["good"],
    "outcome:succeeded outcome:denied": ["refused", "invalid", "good"],
    "outcome:denied code:SCHEMA.*": ["invalid"],
    "code:AUTH.NO_GRANT": ["refused"],
    "schema.validation_failed": ["invalid"],
    'user:"ann 7"': ["good"],
    "after:1h": ["queued", "refused", "invalid", "good"],
    "before:1h": [],
}


@pytest.mark.req("CONN-6")
def test_a_query_finds_the_calls_that_it_says(made: dict[str, str], caller: Caller) -> None:
    found = {q: find(caller, q) for q in QUERIES}

    assert found == {q: [made[name] for name in names] for q, names in QUERIES.items()}


@pytest.mark.req("CONN-6")
def test_a_call_is_found_by_its_id_and_by_the_state_that_it_waits_in(made: dict[str, str], caller: Caller) -> None:
    assert find(caller, f"call:{made['good']}") == find(caller, made["good"]) == [made["good"]]
    assert find(caller, state="queued") == [made["queued"]]
    assert find(caller, f"-{made['good']}", limit=1) == [made["queued"]]


@pytest.mark.req("CONN-6")
def test_an_agent_sees_its_own_calls_and_a_stranger_none(
    made: dict[str, str], quiet: Caller, foreign_caller: Caller, auditor: Person
) -> None:
    assert find(quiet) == [made["refused"]]
    assert find(quiet, "agent:assistant") == find(quiet, made["good"]) == find(foreign_caller) == []
    seen = auditor.client().get("/api/v1/invocations?q=order-0001").json()["data"]["invocations"]
    assert [each["call_id"] for each in seen] == [made["good"]]


@pytest.mark.req("CONN-6")
def test_a_row_says_what_became_of_the_call_and_holds_no_value(made: dict[str, str], quiet: Caller) -> None:
    [row] = quiet.get("/invocations").json()["data"]["invocations"]

    assert row | {"created_at": "", "finished_at": "", "trace_id": ""} == {
        "call_id": made["refused"],
        "status": "denied",
        "state": "denied",
        "agent": quiet.agent.wire_id,
        "tool": ECHO,
        "version": "1.0.0",
        "origin": "api",
        "dry_run": False,
        "request_id": "order-0003",
        "reason": "AUTH.NO_GRANT",
        "trace_id": "",
        "created_at": "",
        "finished_at": "",
        "url": f"/api/v1/invocations/{made['refused']}",
    }


@pytest.mark.req("CONN-6")
def test_what_no_call_is_found_by_is_refused_with_what_to_write_instead(caller: Caller) -> None:
    for q in ("kind:tool.enabled", "colour:blue", "-after:7d", "call:nonsense"):
        error = assert_problem(caller.get(f"/invocations?q={q}"), 422, "EVIDENCE.SEARCH_INVALID")["error"]

        assert error["details"]["findings"][0]["pointer"] == "/q"
        assert error["remedy"].startswith("Write instead: ")


@pytest.mark.req("CONN-6")
def test_a_query_that_takes_too_long_is_given_up_also_in_what_is_looked_up_for_it(
    made: dict[str, str], quiet: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "LIMIT_MS", 50)
    monkeypatch.setattr(api, "find_calls", run_endless_statement)

    assert_problem(quiet.get("/invocations?q=order-0003"), 503, "EVIDENCE.SEARCH_TOO_BROAD")
