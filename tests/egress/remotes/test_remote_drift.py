"""Remote drift: is what a server somewhere else lists held against the review, before anything is sent that a person has not seen?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.urls import reverse
from mcp.types import ToolAnnotations

from access.models import Delivery, Notification
from invocations.models import State
from invocations.run import remote_listings
from kernel.database.connections import database_time
from registry.installations import services as installations
from registry.installations.drift import pause_drifted, was_listing_held
from registry.models import Installation, InstallationState, ToolVersion
from registry.secrets import services as secrets
from tests.egress.remote_servers import TOKEN, RemoteServer
from tests.egress.remotes.hub_tools import CHANGED, TOOL
from tests.support.calls import assert_problem, row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


def list_otherwise(tools: Any, part: str) -> None:
    """The server lists its tool with another one of these."""
    said: dict[str, Any] = {"name": "Get-Item", "description": "Gives an item by its id."}

    def get_item(item: str) -> dict[str, Any]:
        return {"item": item, "price": 0}

    def get_item_of(item: str, shop: str = "") -> dict[str, Any]:
        return {"item": item, "shop": shop}

    def get_price(item: str) -> dict[str, int]:
        return {item: 0}

    changed: dict[str, tuple[dict[str, Any], Any]] = {
        "description": ({"description": CHANGED}, get_item),
        "title": ({"title": "Get whatever"}, get_item),
        "annotations": ({"annotations": ToolAnnotations(read_only_hint=True)}, get_item),
        "inputSchema": ({}, get_item_of),
        "outputSchema": ({}, get_price),
        "name": ({"name": "get-item"}, get_item),
    }
    more, function = changed[part]
    tools.tool(**said | more)(function)


@pytest.mark.req("BRING-3")
@pytest.mark.parametrize("part", ["description", "title", "annotations", "inputSchema", "outputSchema", "name"])
def test_whatever_is_listed_otherwise_nothing_is_sent(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller, part: str
) -> None:
    bring()
    remote.tools.remove_tool("Get-Item")
    list_otherwise(remote.tools, part)

    body = assert_problem(caller.invoke(TOOL, {"item": "a"}), 409, "TOOL.DRIFTED")

    assert part in body["error"]["details"]["changed"]
    assert "tools/call" not in remote.asked()


@pytest.mark.req("BRING-3")
def test_a_tool_that_is_listed_otherwise_is_not_called_and_is_paused(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller, operator: Person
) -> None:
    Notification.objects.create(
        tenant_id=operator.by.tenant_id,
        channel="email",
        target="ops@example.org",
        events=["tool.drifted"],
        created_by=operator.by.id,
    )
    bring()
    remote.tools.remove_tool("Get-Item")

    @remote.tools.tool(name="Get-Item", description=CHANGED)
    def get_item(item: str) -> dict[str, Any]:
        return {"item": item, "price": 0}

    answer = caller.invoke(TOOL, {"item": "a"})
    then = caller.invoke(TOOL, {"item": "a"})

    body = assert_problem(answer, 409, "TOOL.DRIFTED")
    assert "description" in body["error"]["details"]["changed"]
    assert "evil" not in answer.content.decode()
    assert "tools/call" not in remote.asked()
    assert row_of(answer).state == State.FAILED
    assert_problem(then, 409, "TOOL.PAUSED")
    row = Installation.objects.get(name=TOOL)
    assert row.state == InstallationState.PAUSED
    assert "description" in row.reason
    told = Delivery.objects.get(event="tool.drifted")
    assert (told.body["tool"], told.body["url"]) == (TOOL, reverse("tool", args=[TOOL]))


@pytest.mark.req("BRING-3")
def test_a_tool_that_vanished_is_not_called(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring()
    remote.tools.remove_tool("Get-Item")

    body = assert_problem(caller.invoke(TOOL, {"item": "a"}), 409, "TOOL.DRIFTED")

    assert body["error"]["details"] == {"changed": ["name"]}
    assert "tools/call" not in remote.asked()


@pytest.mark.req("BRING-3")
def test_another_tool_that_changed_is_told_with_the_answer(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring()
    remote.tools.remove_tool("draw")

    answer = caller.invoke(TOOL, {"item": "a"})

    assert answer.status_code == 200
    assert answer.json()["warnings"] == [
        "The server lists other tools otherwise than when this one was brought. This one is as it was."
    ]


def test_the_list_is_looked_at_again_after_five_minutes_and_with_other_settings(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller, operator: Person
) -> None:
    bring()
    caller.invoke(TOOL, {"item": "a"})
    held = Installation.objects.get(name=TOOL).listing_held_at
    assert held is not None

    def asks_for_the_list() -> bool:
        remote.heard.clear()
        assert caller.invoke(TOOL, {"item": "a"}).status_code == 200
        return "tools/list" in remote.asked()

    assert not asks_for_the_list()
    Installation.objects.filter(name=TOOL).update(listing_held_at=held.replace(year=held.year - 1))
    assert asks_for_the_list()
    assert not asks_for_the_list()
    secrets.set_secret(name="token", value=TOKEN, by=operator.by)
    assert asks_for_the_list()
    installations.pause_installation(name=TOOL, reason="x", by=operator.by)
    installations.resume_installation(name=TOOL, reason="x", by=operator.by)
    assert asks_for_the_list()


@pytest.mark.req("BRING-3")
def test_calls_between_a_look_and_the_change_that_the_next_one_finds_are_told(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller, operator: Person
) -> None:
    bring()
    looked = row_of(caller.invoke(TOOL, {"item": "a"}))
    remote.tools.remove_tool("Get-Item")
    list_otherwise(remote.tools, "description")
    unheld = [row_of(caller.invoke(TOOL, {"item": "a"})) for _ in range(2)]
    assert [each.state for each in unheld] == [State.SUCCEEDED] * 2
    Installation.objects.filter(name=TOOL).update(listing_held_at=looked.started_at, changed_at=database_time())

    assert_problem(caller.invoke(TOOL, {"item": "a"}), 409, "TOOL.DRIFTED")

    row = Installation.objects.get(name=TOOL)
    assert "3 calls ran after" in row.reason
    assert all(each.wire_id in row.reason for each in (looked, *unheld))
    page = operator.client().get(reverse("tool", args=[TOOL])).text
    assert "3 calls ran after" in page


@pytest.mark.req("BRING-3")
def test_a_call_between_whose_look_and_whose_own_request_the_server_changed_is_told(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring()

    def change() -> None:
        remote.while_called = lambda: None
        remote.tools.remove_tool("Get-Item")
        list_otherwise(remote.tools, "description")

    remote.while_called = change
    met = caller.invoke(TOOL, {"item": "a"})
    assert remote.asked() == ["tools/list", "tools/call"]
    began = row_of(met).started_at
    Installation.objects.filter(name=TOOL).update(listing_held_at=began, changed_at=database_time())

    then = caller.invoke(TOOL, {"item": "a"})

    assert_problem(then, 409, "TOOL.DRIFTED")
    assert remote.asked()[2:] == ["tools/list"]
    reason = Installation.objects.get(name=TOOL).reason
    assert "1 call ran after" in reason
    assert row_of(met).wire_id in reason


@pytest.mark.req("BRING-3")
def test_a_tool_that_changed_is_paused_also_where_nobody_can_say_which_calls_met_the_change(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_too_long(*_: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM a_table_that_is_not_there")

    bring()
    remote.tools.remove_tool("Get-Item")
    list_otherwise(remote.tools, "description")
    monkeypatch.setattr(remote_listings, "_find_unheld", take_too_long)

    assert_problem(caller.invoke(TOOL, {"item": "a"}), 409, "TOOL.DRIFTED")

    row = Installation.objects.get(name=TOOL)
    assert row.state == InstallationState.PAUSED
    assert "Which calls may have met the change could not be found out." in row.reason


@pytest.mark.req("BRING-3")
def test_an_answer_that_no_reviewed_tool_gives_has_the_next_call_look(
    bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring()
    assert caller.invoke(TOOL, {"item": "a"}).status_code == 200
    remote.tools.remove_tool("Get-Item")

    @remote.tools.tool(name="Get-Item", structured_output=False)
    def get_item(item: str) -> str:
        return item

    odd = caller.invoke(TOOL, {"item": "a"})
    then = caller.invoke(TOOL, {"item": "a"})

    assert_problem(odd, 502, "SERVICE.ANSWER_UNUSABLE")
    assert_problem(then, 409, "TOOL.DRIFTED")
    assert row_of(odd).wire_id in Installation.objects.get(name=TOOL).reason


@pytest.mark.req("BRING-3")
@pytest.mark.parametrize("effect", ["Read", "Network"])
def test_a_tool_that_vanished_after_a_look_is_found_with_the_second_call(
    effect: str, bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring(side_effect=effect)
    assert caller.invoke(TOOL, {"item": "a"}).status_code == 200
    remote.tools.remove_tool("Get-Item")

    gone = caller.invoke(TOOL, {"item": "a"})
    then = caller.invoke(TOOL, {"item": "a"})

    assert gone.status_code >= 400
    assert_problem(then, 409, "TOOL.DRIFTED")


@pytest.mark.req("BRING-3")
@pytest.mark.parametrize(("effect", "reason"), [("Read", "DOMAIN.UPSTREAM_ERROR"), ("Network", "DOMAIN.SERVER_ERROR")])
def test_an_error_of_the_server_has_the_next_call_look(
    effect: str, reason: str, bring: Callable[..., ToolVersion], remote: RemoteServer, caller: Caller
) -> None:
    bring(side_effect=effect)
    assert caller.invoke(TOOL, {"item": "a"}).status_code == 200

    assert_problem(caller.invoke(TOOL, {"item": "none"}), 502, reason)
    remote.heard.clear()
    then = caller.invoke(TOOL, {"item": "a"})

    assert (then.status_code, remote.asked()) == (200, ["tools/list", "tools/call"])


def test_a_list_that_was_held_against_one_version_says_nothing_of_another(
    bring: Callable[..., ToolVersion], caller: Caller
) -> None:
    first = bring()
    assert caller.invoke(TOOL, {"item": "a"}).status_code == 200
    tenant = caller.agent.tenant_id
    assert was_listing_held(tenant_id=tenant, version=first)

    second = bring(version="1.0.1", display_name="An item")

    assert not was_listing_held(tenant_id=tenant, version=first)
    assert not was_listing_held(tenant_id=tenant, version=second)
    assert not pause_drifted(tenant_id=tenant, version=first, changed=["description"])
