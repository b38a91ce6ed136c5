"""Explanations: why can an agent call a tool, or why not, and what would change that?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from access.models import GrantRequest
from access.roles import Role
from evidence.models import Fact
from invocations.models import Invocation
from tests.conftest import make_person
from tests.support.policies_in_force import ceiling, forbid, permit, put_in_force

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db

ECHO = "sample.tools.echo"


def explained(caller: Caller, **body: Any) -> dict[str, Any]:
    answer = caller.post(f"/tools/{ECHO}/explain", body)
    assert answer.status_code == 200, answer.json()
    data: dict[str, Any] = answer.json()["data"]
    return data


@pytest.mark.req("TOOLS-10", "TOOLS-15")
def test_every_step_that_can_be_known_is_told_not_only_the_first_that_refuses(
    caller: Caller, enable: Callable[..., Tool]
) -> None:
    enable()
    put_in_force(permit(), forbid("no-echo", tool={"equals": ECHO}))

    data = explained(caller)

    assert data["allow"] is False
    assert data["refused_at"] == "grant"
    failed = {step["name"]: step["problem"]["reason"] for step in data["steps"] if step["status"] == "failed"}
    assert failed == {"grant": "AUTH.NO_GRANT", "profile": "POLICY.DENY_TOOL"}
    assert data["because"] == ["The rule no-echo of hub@1 forbids this call."]
    assert not Invocation.objects.exists()


@pytest.mark.req("TOOLS-10")
def test_making_the_smallest_changes_lets_the_call_through(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    put_in_force(ceiling("box", {"tmp": 1_000_000}))  # nothing is permitted

    changes = {change["kind"]: change for change in explained(caller)["changes"]}
    wanted = changes["grant"]["change"]
    grant(tools=wanted["tools"], capabilities=wanted["capabilities"])
    put_in_force(ceiling("box", {"tmp": 1_000_000}), changes["policy"]["change"]["add"])

    after = explained(caller, arguments={"text": "x"})
    assert after["allow"] is True, after
    assert after["changes"] == []


def test_what_depends_on_the_arguments_is_left_open_and_told(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    condition = {"pointer": "/text", "op": "equals", "value": "yes"}
    grant(conditions=[condition])

    assert explained(caller)["allow"] is True
    assert explained(caller)["conditions"] == [condition]
    assert explained(caller, arguments={"text": "no"})["refused_at"] == "grant"
    assert explained(caller, arguments={"text": "yes"})["allow"] is True


@pytest.mark.req("TOOLS-10", "TOOLS-31")
def test_the_available_view_changes_its_etag_exactly_when_something_changes(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any]
) -> None:
    enable()
    grant()
    first = caller.get(f"/tools/{ECHO}/available")
    again = caller.get(f"/tools/{ECHO}/available", **{"If-None-Match": first.headers["ETag"]})
    put_in_force(permit(), ceiling("box", {"tmp": 4096}, max_bytes_out=1000, timeout_ms=1000))
    changed = caller.get(f"/tools/{ECHO}/available", **{"If-None-Match": first.headers["ETag"]})

    assert first.json()["data"]["policy"]["version"] == "builtin@2"
    assert again.status_code == 304
    assert changed.status_code == 200
    assert changed.json()["data"]["policy"]["version"] == "hub@1"
    assert changed.json()["data"]["profile_hash"] != first.json()["data"]["profile_hash"]


@pytest.mark.parametrize(("username", "role"), [("otto", Role.OPERATOR), ("dora", Role.DEVELOPER)])
def test_a_person_sees_why_and_asks_for_the_missing_grant_in_one_step(
    username: str, role: Role, tenant: Tenant, caller: Caller, enable: Callable[..., Tool]
) -> None:
    enable()
    client = make_person(tenant, username, role).client()

    page = client.get("/explain", {"agent": caller.agent.wire_id, "tool": ECHO})
    asked = client.post("/explain/request", {"agent": caller.agent.wire_id, "tool": ECHO}, follow=True)

    assert f"{caller.agent.name} cannot call {ECHO} now." in page.content.decode()
    assert asked.status_code == 200
    waiting = GrantRequest.objects.get()
    assert (waiting.agent, waiting.tools) == (caller.agent, ECHO)
    after = asked.content.decode()
    assert "is waiting for a decision" in after
    assert "Request this grant" not in after
    assert (waiting.wire_id in after) is (role is Role.OPERATOR)


def test_a_tool_or_an_agent_that_is_not_there_is_said_beside_the_field(operator: Person, caller: Caller) -> None:
    client = operator.client()

    unknown_tool = client.get("/explain", {"agent": caller.agent.wire_id, "tool": "no.such.tool"})
    unknown_agent = client.get("/explain", {"agent": "agt_nobody", "tool": ECHO})
    bad_json = client.get("/explain", {"agent": caller.agent.wire_id, "tool": ECHO, "arguments": "{"})

    assert [page.status_code for page in (unknown_tool, unknown_agent, bad_json)] == [422, 422, 422]
    assert "There is no tool no.such.tool here." in unknown_tool.content.decode()


@pytest.mark.req("SPEC-10", "TOOLS-28")
def test_a_callers_own_words_are_recorded_only_where_a_rule_says_the_same_word(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> None:
    enable()
    grant()
    put_in_force(permit(), forbid("no-old-models", model={"in": ["vendor:old", "vendor:older"]}))

    for number, model in enumerate(["vendor:old", "my-secret-model"]):
        caller.invoke(ECHO, {"text": "x"}, client={"app": "my-app", "model": model}, request_id=f"own-words-{number}")

    began = [json.loads(bytes(fact.leaf)) for fact in Fact.objects.filter(kind="invocation.began").order_by("id")]
    recorded = [leaf["data"]["decision_input"] for leaf in began]
    assert [each.get("model") for each in recorded] == ["vendor:old", None]
    assert [each.get("client_app") for each in recorded] == [None, None]
    assert [leaf["data"]["decision"]["allowed"] for leaf in began] == [False, True]
