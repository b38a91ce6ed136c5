"""Manners of REST: do answers say what a program needs to ask well: tags, what is left of a limit, which version answered?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from access.budgets import rate_limits
from access.budgets.services import set_budget
from kernel.http.api_versions import API_VERSION, API_VERSIONS
from tests.conftest import make_caller
from tests.support.calls import assert_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("each_way")]
ECHO = "sample.tools.echo"


@pytest.fixture
def ready(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    rate_limits.make_memory_store.cache_clear()
    enable()
    grant()


def limits(answer: Any) -> tuple[dict[str, str], dict[str, str]]:
    """(Policies, what is left), each by the name of its limit."""
    read = [
        {
            name.strip('"'): rest
            for name, _, rest in (each.partition(";") for each in answer.headers[header].split(", "))
        }
        for header in ("RateLimit-Policy", "RateLimit")
    ]
    return read[0], read[1]


def put_days(caller: Caller, days: int, **headers: str) -> Any:
    body = {"days": {"logs": days}}
    return Client().put(
        "/api/v1/evidence/retention", body, content_type="application/json", headers=caller.headers() | headers
    )


@pytest.mark.req("CONN-6")
@pytest.mark.parametrize("path", ["/agents", "/budgets", "/evidence/retention", "/openapi.json", "/tools", "/models"])
def test_who_has_an_answer_is_not_sent_it_again_until_it_changes(path: str, caller: Caller) -> None:
    first = caller.get(path)
    tag = first.headers["ETag"]

    again = caller.get(path, **{"If-None-Match": f'"something-else", {tag}'})

    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert (again.headers["ETag"], again.headers["Cache-Control"]) == (tag, "private, no-cache")
    assert caller.get(path, **{"If-None-Match": '"something-else"'}).status_code == 200
    if path == "/agents":
        caller.post(path, {"name": "another"})
        assert caller.get(path, **{"If-None-Match": tag}).status_code == 200


@pytest.mark.req("CONN-6")
def test_a_change_under_a_condition_is_refused_to_who_has_not_seen_the_last_one(caller: Caller) -> None:
    seen = caller.get("/evidence/retention").headers["ETag"]

    assert put_days(caller, 30, **{"If-Match": seen}).status_code == 200
    late = put_days(caller, 60, **{"If-Match": seen})

    now = caller.get("/evidence/retention")
    assert assert_problem(late, 412, "STATE.PRECONDITION_FAILED")["error"]["details"] == {"etag": now.headers["ETag"]}
    assert now.json()["data"]["days"]["logs"] == 30
    assert put_days(caller, 60, **{"If-Match": "*"}).status_code == 200
    assert put_days(caller, 90, **{"If-Match": f"W/{now.headers['ETag']}"}).status_code == 412
    assert put_days(caller, 90).status_code == 200


@pytest.mark.req("CONN-6")
def test_who_may_not_read_it_learns_nothing_of_it_by_a_condition(ready: None, caller: Caller, operator: Person) -> None:
    writes = make_caller(operator.by, "writes", scopes=("tools:operate",))
    path = f"/api/v1/installations/{ECHO}"

    for tag in ("*", caller.get(f"/installations/{ECHO}").headers["ETag"], '"guessed"'):
        headers = writes.headers() | {"If-Match": tag}
        refused = Client().patch(path, {"follows": False}, content_type="application/json", headers=headers)
        assert assert_problem(refused, 403, "AUTH.FORBIDDEN")["error"]["details"] == {"missing": "tools:read"}


@pytest.mark.req("CONN-6")
def test_a_condition_of_a_get_that_does_not_hold_is_a_problem(caller: Caller) -> None:
    answer = caller.get("/agents", **{"If-Match": '"another"'})

    assert_problem(answer, 412, "STATE.PRECONDITION_FAILED")
    assert caller.get("/agents", **{"If-Match": caller.get("/agents").headers["ETag"]}).status_code == 200


@pytest.mark.req("CONN-6")
def test_a_condition_that_an_address_cannot_keep_is_not_ignored(caller: Caller) -> None:
    answer = caller.post("/agents", {"name": "another"}, **{"If-Match": "*"})

    assert_problem(answer, 412, "STATE.PRECONDITION_FAILED")
    assert [each["name"] for each in caller.get("/agents").json()["data"]["agents"]] == [caller.agent.name]


@pytest.mark.req("CONN-6")
def test_what_nobody_may_keep_has_no_tag(ready: None, caller: Caller) -> None:
    call = caller.invoke(ECHO, {"text": "x"})

    assert "ETag" not in caller.get(f"/invocations/{call.json()['call']['call_id']}/nothing").headers
    assert "ETag" not in call.headers


@pytest.mark.req("CONN-6")
def test_every_answer_says_its_version_and_another_one_is_refused(caller: Caller) -> None:
    for answer in (caller.get("/agents"), caller.get("/agents?x=1"), Client().get("/api/v1/agents")):
        assert answer.headers["Toolhub-Version"] == API_VERSION
    assert caller.get("/agents", **{"Toolhub-Version": API_VERSION}).status_code == 200
    refused = caller.get("/agents", **{"Toolhub-Version": "2020-01-01"})
    error = assert_problem(refused, 400, "REQUEST.UNKNOWN_API_VERSION")["error"]
    assert error["details"] == {"versions": list(API_VERSIONS)}
    assert caller.get("/openapi.json").json()["info"]["version"] == API_VERSION


@pytest.mark.req("CONN-6")
def test_a_call_says_what_is_left_of_the_budgets_of_calls(ready: None, caller: Caller, operator: Person) -> None:
    agent_id, by = caller.agent.pk, operator.by
    calls = set_budget(
        scope="agent", agent_id=agent_id, dimension="calls", amount=3, window_s=3600, reason="", by=by
    ).wire_id
    rate = set_budget(
        scope="agent", agent_id=agent_id, dimension="rate", amount=1000, window_s=86_400, reason="", by=by
    ).wire_id
    set_budget(scope="tenant", dimension="bytes_out", amount=10**6, window_s=60, reason="", by=by)

    answers = [caller.invoke(ECHO, {"text": "x"}, idempotency_key=f"key-{n}") for n in range(4)]
    again = caller.invoke(ECHO, {"text": "x"}, idempotency_key="key-0")

    policies, left = zip(*map(limits, answers), strict=True)
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert policies[0] == {**policies[0], calls: "q=3;w=3600", rate: "q=1000;w=86400"}
    assert [each[calls].partition(";")[0] for each in left] == ["r=2", "r=1", "r=0", "r=0"]
    assert all(0 < int(each[calls].partition(";t=")[2]) <= 3600 for each in left)
    assert left[0][rate].startswith("r=99;t=8")  # one of a hundred at once, whole again in 86 s
    assert set(left[3]) == {calls}
    assert "RateLimit" not in again.headers


@pytest.mark.req("CONN-6")
def test_who_fails_too_often_is_told_the_limit(settings: Any, db: None) -> None:
    settings.TOOLHUB_RATE_FAILED_KEYS = 2
    rate_limits.make_memory_store.cache_clear()

    answers = [Client().get("/api/v1/agents") for _ in range(3)]

    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert answers[2].headers["RateLimit-Policy"] == '"failed-keys";q=2;w=60'
    assert answers[2].headers["RateLimit"] == f'"failed-keys";r=0;t={answers[2].headers["Retry-After"]}'
