"""Leave for agents: is it given by the person's word alone, and taken back for good?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from access.server_accounts import services

if TYPE_CHECKING:
    from access.models import ServerAccount
    from tests.conftest import Caller
    from tests.integration.access.server_accounts.conftest import Browser

pytestmark = pytest.mark.django_db


def ask(account: ServerAccount, caller: Caller) -> None:
    """The agent names the person."""
    services.request_account(
        resource=account.server.resource,
        member_id=account.member_id,
        agent=caller.agent.wire_id,
        by=caller.by,
    )


@pytest.mark.req("BRING-3")
def test_an_agent_that_asks_is_not_ticked_beforehand(alice: Browser, caller: Caller) -> None:
    account = alice.request()
    ask(account, caller)
    address = reverse("server_account", args=[account.pk])

    page = alice.client.get(address)

    assert page.context["asking"] == [caller.agent]
    assert "checked" not in page.content.decode().partition('name="agents"')[2].partition(">")[0]
    alice.client.post(reverse("server_account_agents", args=[account.pk]), {"agents": [caller.agent.wire_id]})
    kept = alice.client.get(address).content.decode()
    assert "checked" in kept.partition('name="agents"')[2].partition(">")[0]


def test_leave_that_was_taken_back_meanwhile_does_not_return(alice: Browser, caller: Caller) -> None:
    account = alice.request()
    ask(account, caller)
    mine = {"agents": [caller.agent.wire_id]}
    alice.connect(account, **mine)
    begun = alice.agree(alice.begin(account, **mine))
    alice.client.post(reverse("server_account_agents", args=[account.pk]), {"agents": []})

    assert alice.come_back(begun).status_code == 302

    assert alice.find_newest().agents == []


@pytest.mark.req("BRING-3")
def test_connecting_again_gives_the_leave_that_is_given_with_it(alice: Browser, caller: Caller) -> None:
    account = alice.connect()
    ask(account, caller)

    answer = alice.client.post(
        f"/api/v1/server-accounts/{account.wire_id}/connect",
        {"agents": [caller.agent.wire_id]},
        content_type="application/json",
    )

    assert alice.come_back(alice.agree(answer.json()["data"]["url"])).status_code == 302
    found = alice.find_newest()
    assert found.pk != account.pk
    assert (found.agents, found.asked_by) == ([caller.agent.wire_id], [])
    ask(found, caller)
    assert alice.find_newest().asked_by == []


def test_who_asks_for_an_account_asks_for_the_one_in_its_place(alice: Browser, caller: Caller) -> None:
    account = alice.connect()
    ask(account, caller)

    found = alice.connect(account)

    assert (found.agents, found.asked_by) == ([], [caller.agent.wire_id])
