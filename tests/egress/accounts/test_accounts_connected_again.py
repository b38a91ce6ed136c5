"""Accounts connected again: do calls wait on for the account that takes the place of the one they have waited for?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.consents import services as consents
from access.models import ServerAccount
from access.server_accounts.services import account_url
from invocations.models import State
from invocations.run import execution
from tests.egress.accounts.conftest import TOOL, connect
from tests.support.calls import row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db
ASKS: dict[str, Any] = {"purpose": "x", "on_consent": "ask"}
WAITS: dict[str, Any] = {"purpose": "x", "on_consent": "hold"}


def find_newest() -> ServerAccount:
    return ServerAccount.objects.select_related("server").order_by("-pk")[0]


def connect_first(person: Person, caller: Caller, accounts: AuthorizationServer, **said: Any) -> None:
    asked = caller.invoke(TOOL, {}, user_id=person.by.id, **ASKS).json()["error"]["details"]
    connect(person, asked["url"], accounts, **said)


@pytest.mark.req("BRING-3")
def test_a_call_that_waits_for_leave_goes_on_by_the_account_in_its_place(
    bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person
) -> None:
    bring()
    connect_first(alice, caller, accounts)
    row = row_of(caller.invoke(TOOL, {}, user_id=alice.by.id, **WAITS))
    assert row.state == State.HELD

    connect(alice, account_url(find_newest()), accounts, user="alice.other")

    row.refresh_from_db()
    account = find_newest()
    assert (row.state, row.account_id) == (State.HELD, account.pk)
    assert account.asked_by == [caller.agent.wire_id]
    alice.client().post(reverse("server_account_agents", args=[account.pk]), {"agents": [caller.agent.wire_id]})
    execution.run_queued_calls()
    assert caller.get(f"/invocations/{row.wire_id}").json()["data"]["of"] == "alice.other"


@pytest.mark.req("BRING-3")
def test_a_call_that_waits_for_a_consent_is_asked_by_the_account_in_its_place(
    bring: Callable[..., ToolVersion],
    accounts: AuthorizationServer,
    caller: Caller,
    alice: Person,
    second_operator: Person,
) -> None:
    bring(side_effect="Write", safety_class="Medium")
    connect_first(alice, caller, accounts, agents=(caller.agent.wire_id,))
    row = row_of(caller.invoke(TOOL, {}, user_id=alice.by.id, **WAITS))
    assert row.consent_id is not None

    connect(alice, account_url(find_newest()), accounts, user="alice.other")
    row.refresh_from_db()
    assert row.state == State.HELD
    consents.approve_consent(consent_id=row.consent_id, reason="x", mode="once", by=second_operator.by)
    execution.run_queued_calls()

    assert caller.get(f"/invocations/{row.wire_id}").json()["data"]["of"] == "alice.other"
