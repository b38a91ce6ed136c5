"""Delegation pages: are grants that agents hand on given and seen over REST and in the console?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from access.grants import services as grants
from access.grants.attenuation import RequestedTerms
from access.models import Grant
from invocations.models import Invocation
from kernel.problems import Conflict
from tests.conftest import make_caller
from tests.support.calls import assert_problem, row_of
from tests.support.delegations import ECHO, SHORT, SOON, hand_on, leaf

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db


@pytest.mark.req("TOOLS-32")
def test_over_rest_an_agent_hands_on_sees_and_takes_back(
    caller: Caller, helper: Caller, third: Caller, foreign_caller: Caller, grant: Callable[..., Grant]
) -> None:
    given = grant(may_delegate=1)
    body = {
        "grant": given.wire_id,
        "to_agent": helper.agent.wire_id,
        "tools": ECHO,
        "conditions": [SHORT],
        "expires_at": SOON.isoformat(),
        "purpose": "to echo",
        "calls_limit": 5,
    }

    made = caller.post("/delegations", body)

    assert made.status_code == 201
    said = made.json()["data"]
    assert made.headers["Location"] == f"/api/v1/delegations/{said['id']}"
    assert (said["agent"], said["tools"], said["calls_limit"]) == (helper.agent.wire_id, ECHO, 5)
    assert said["actors"] == [{"agent": caller.agent.wire_id, "grant": given.wire_id}]
    assert (said["delegated_from"], said["given_by"]) == (given.wire_id, caller.by.id)
    for one, sees in ((caller, True), (helper, True), (third, False), (foreign_caller, False)):
        listed = [each["id"] for each in one.get("/delegations").json()["data"]["delegations"]]
        assert (listed == [said["id"]]) is sees
        assert (one.get(f"/delegations/{said['id']}").status_code == 200) is sees
    assert_problem(caller.post("/delegations", body | {"tools": "*"}), 403, "AUTH.DELEGATION_TOO_WIDE")
    assert caller.post("/delegations", body | {"to_agent": foreign_caller.agent.wire_id}).status_code == 404
    assert caller.post("/delegations", body | {"expires_at": None}).status_code == 422
    assert helper.delete(f"/delegations/{said['id']}").status_code == 404
    assert caller.delete(f"/delegations/{said['id']}").json()["data"]["state"] == "revoked"
    assert leaf("delegation.revoked")["agent"] == helper.agent.wire_id
    assert caller.delete(f"/delegations/{said['id']}").status_code == 409


def test_a_key_hands_nothing_on_unless_that_was_said(caller: Caller, operator: Person) -> None:
    plain = make_caller(operator.by, "plain", scopes=("grants:request",))

    assert plain.get("/delegations").status_code == 200
    assert_problem(plain.post("/delegations", {}), 403, "AUTH.FORBIDDEN")


@pytest.mark.req("TOOLS-32")
def test_calls_under_what_an_agent_handed_on_are_found_by_that_agent(
    caller: Caller,
    helper: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
) -> None:
    enable()
    hand_on(grant(may_delegate=1), caller, helper)
    done = row_of(helper.invoke(ECHO, {"text": "hi"}))

    assert list(Invocation.objects.by_or_for(pk=caller.agent.pk)) == [done]
    assert list(Invocation.objects.by_or_for(name="helper")) == [done]
    assert caller.get(f"/invocations/{done.wire_id}").status_code == 404  # what was said in it is not the giver's


@pytest.mark.req("TOOLS-32")
def test_the_page_of_a_grant_shows_where_it_came_from_and_what_became_of_it(
    caller: Caller, helper: Caller, third: Caller, operator: Person
) -> None:
    client = operator.client()
    client.post(
        "/grants/new", {"agent": caller.agent.pk, "tools": "sample.*", "may_delegate": "2", "reason": "to share"}
    )
    given = Grant.objects.get()
    first = hand_on(given, caller, helper, depth=1)
    second = hand_on(first, helper, third, RequestedTerms(tools=ECHO))

    for page in (given, first, second):
        shown = client.get(f"/grants/{page.wire_id}")
        assert [(depth, grant.pk) for depth, grant in shown.context["tree"]] == [
            (0, given.pk),
            (1, first.pk),
            (2, second.pk),
        ]
        assert "Delegated" in shown.content.decode()
    grants.revoke_grant(grant_id=given.pk, reason="enough", by=operator.by)
    assert client.get(f"/grants/{second.wire_id}").content.decode().count("Revoked") >= 3
    assert second.wire_id in client.get("/grants?state=revoked").content.decode()


@pytest.mark.req("TOOLS-32")
def test_who_decides_sees_for_whom_the_agent_calls(
    caller: Caller,
    helper: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
) -> None:
    enable("write", side_effect="Write", idempotency="keyed", dry_run=True)
    given = grant(may_delegate=1)
    hand_on(given, caller, helper)
    body: dict[str, Any] = {"on_consent": "hold", "purpose": "to write", "idempotency_key": "k"}

    held = row_of(helper.invoke("sample.tools.write", {"text": "hi"}, **body))

    assert held.state == "held"
    assert held.consent is not None
    assert held.consent.agent_id == helper.agent.pk  # the consent is for who calls
    for path in (f"/consents/{held.consent.wire_id}", f"/invocations/{held.wire_id}"):
        assert "which delegated the grant" in operator.client().get(path).content.decode()
    operator.client().post(
        f"/consents/{held.consent.wire_id}/decision", {"decision": "approve", "mode": "once", "reason": "good"}
    )
    bell.deliver()
    held.refresh_from_db()
    assert held.actors == [{"agent": caller.agent.wire_id, "grant": given.wire_id}]


@pytest.mark.req("TOOLS-32")
def test_what_is_handed_on_unasked_stands_in_the_way_of_nothing(
    caller: Caller,
    helper: Caller,
    enable: Callable[..., Tool],
    grant: Callable[..., Grant],
    bell: Bell,
    operator: Person,
) -> None:
    """An agent that hands on little, of the very tool, neither narrows what another may do nor gets to see its calls."""
    enable()
    given = grant(may_delegate=1)
    own = grants.give_grant(agent_id=helper.agent.pk, tools="sample.*", reason="its work", by=operator.by)
    hand_on(given, caller, helper, RequestedTerms(tools=ECHO, capabilities={}, conditions=[]))

    row = row_of(helper.invoke(ECHO, {"text": "hi"}))

    assert (row.grant_id, row.actors) == (own.pk, [])


def test_nobody_is_handed_more_than_can_be_looked_at_with_each_call(
    caller: Caller, helper: Caller, grant: Callable[..., Grant], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("access.delegations.services.MAX_IN_FORCE", 2)
    for _ in range(2):
        hand_on(grant(may_delegate=1), caller, helper)

    with pytest.raises(Conflict, match="2 grants of other agents already"):
        hand_on(grant(may_delegate=1), caller, helper)
