"""Authorization page: does what a person has seen and chosen count, exactly and once?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings

from access import services as access
from access.connections.forms import SCOPE_WORDS, describe_once
from access.models import Connection
from access.roles import AGENT_SCOPES, SCOPES
from evidence.models import Fact
from tests.support.connections import Program, read_answer, read_shown, signed_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


def send(browser: Client, page: Any, decision: str, agent: Any, **form: Any) -> Any:
    """The form as it lies on the page, with what the person has changed."""
    usual = {"agent": agent.wire_id, "reach": "all", "scopes": ["tools:read"], "days": "30", "decision": decision}
    kept = {"request": signed_request(page), "shown": read_shown(page)}
    return browser.post("/oauth/authorize", kept | usual | form)


@pytest.mark.req("CONN-1")
def test_an_agent_whose_tools_were_not_shown_is_shown_before_it_is_connected(
    operator: Person, caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any]
) -> None:
    tool = enable().name
    grant()
    other = access.create_agent(name="aaa without tools", by=operator.by)
    browser = operator.client()
    page = Program.registered().open_page(browser)

    refused = send(browser, page, "allow", caller.agent)
    without = send(browser, page, "allow", caller.agent, shown="")
    opened = send(browser, refused, "allow", caller.agent)

    assert read_shown(page) == other.wire_id
    assert (refused.status_code, without.status_code) == (422, 422)
    assert "Look at what this agent may do, then connect." in refused.content.decode()
    assert read_shown(refused) == caller.agent.wire_id
    assert tool in refused.content.decode()
    assert opened.status_code == 303
    assert Connection.objects.get().agent_id == caller.agent.pk


@pytest.mark.req("CONN-1")
def test_ticked_tools_are_not_passed_over_where_all_tools_is_chosen(
    operator: Person, caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any]
) -> None:
    tool = enable().name
    grant()
    browser = operator.client()
    page = Program.registered().open_page(browser)

    refused = send(browser, page, "allow", caller.agent, tools=[tool])
    send(browser, refused, "allow", caller.agent, tools=[tool], reach="these")

    assert refused.status_code == 422
    assert "You have ticked tools." in refused.content.decode()
    assert Connection.objects.get().tools == [tool]


@pytest.mark.req("CONN-1")
def test_looking_at_an_agent_keeps_what_was_chosen_so_far(
    operator: Person, caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any]
) -> None:
    tool = enable().name
    grant()
    browser = operator.client()
    page = Program.registered().open_page(browser)
    narrowed = {"reach": "these", "tools": [tool], "scopes": ["tools:read"], "days": "1", "once": "on"}

    form = send(browser, page, "look", caller.agent, **narrowed).context["form"]

    assert {name: form[name].value() for name in ("agent", "reach", "scopes", "days", "once")} == {
        "agent": caller.agent.wire_id,
        "reach": "these",
        "scopes": ["tools:read"],
        "days": "1",
        "once": True,
    }
    assert f'value="{tool}" checked' in send(browser, page, "look", caller.agent, **narrowed).content.decode()


@pytest.mark.req("CONN-1")
def test_looking_with_nothing_ticked_ticks_nothing(operator: Person, caller: Caller) -> None:
    browser = operator.client()
    page = Program.registered().open_page(browser)

    form = send(browser, page, "look", caller.agent, scopes=[]).context["form"]

    assert form["scopes"].value() == []


@pytest.mark.req("CONN-1")
def test_a_double_click_opens_one_connection_and_the_last_code_is_good(operator: Person, caller: Caller) -> None:
    browser, program = operator.client(), Program.registered()
    page = program.open_page(browser)

    first, second = (read_answer(send(browser, page, "allow", caller.agent))["code"] for _ in range(2))

    assert program.exchange(first).json()["error"] == "invalid_grant"
    assert program.exchange(second).status_code == 200
    assert Connection.objects.get().redeemed_at is not None
    assert Fact.objects.filter(kind="connection.opened").count() == 1


@pytest.mark.req("CONN-1")
def test_a_form_that_was_sent_opens_nothing_else(operator: Person, caller: Caller) -> None:
    browser, program = operator.client(), Program.registered()
    page = program.open_page(browser)
    code = read_answer(send(browser, page, "allow", caller.agent))["code"]

    wider = send(browser, page, "allow", caller.agent, days="31")
    program.exchange(code)
    afterwards = send(browser, page, "allow", caller.agent)

    for answer in (wider, afterwards):
        assert answer.status_code == 422
        assert "This form was sent already." in answer.content.decode()
    assert Connection.objects.get().ended_at is None


@pytest.mark.req("CONN-1")
def test_the_page_says_where_the_tokens_are_good(operator: Person, caller: Caller) -> None:
    browser, program = operator.client(), Program.registered()

    for_mcp = program.open_page(browser).content.decode()
    for_all = program.open_page(browser, resource=settings.TOOLHUB_PUBLIC_URL).content.decode()

    assert "Over MCP only, not over the REST API." in for_mcp
    assert "Over MCP and over the REST API" not in for_mcp
    assert "Over MCP and over the REST API: it asked for the whole hub." in for_all


@pytest.mark.req("CONN-1")
def test_the_page_speaks_of_what_a_program_may_do_in_words_for_people(operator: Person, caller: Caller) -> None:
    page = Program.registered().open_page(operator.client()).content.decode()

    assert set(SCOPE_WORDS) == set(AGENT_SCOPES)
    for scope in AGENT_SCOPES:
        assert str(SCOPE_WORDS[scope]) in page
        assert SCOPES[scope] not in page
    assert "It ends after 1 hour and must ask again." in page


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    ("seconds", "words"), [(600, "10 minutes"), (3600, "1 hour "), (5400, "90 minutes"), (7200, "2 hours")]
)
def test_for_this_once_is_as_long_as_the_hub_was_told(seconds: int, words: str) -> None:
    assert words in describe_once(seconds)


@pytest.mark.req("CONN-1")
def test_the_page_says_that_reading_goes_by_the_agent_and_not_by_the_chosen_tools(
    operator: Person, caller: Caller, enable: Callable[..., Any], grant: Callable[..., Any]
) -> None:
    enable()
    grant()

    page = Program.registered().open_page(operator.client()).content.decode()

    assert "This limits what it calls. Reading goes by the agent" in page
    assert "Read what the agent’s calls returned, also those of other programs, and cancel them" in page
