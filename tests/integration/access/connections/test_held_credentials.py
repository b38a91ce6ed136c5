"""Held credentials: is what a stream was opened with found to count no more, however that came about?"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from access import services as access
from access.authentication.bearer import resolve_principal
from access.authentication.held_credentials import (
    HeldCredential,
    HeldKind,
    find_ended_credentials,
    find_token_end,
)
from access.connections.services import end_connection
from access.models import ApiKey, Connection
from access.oauth.tokens import HUB_LIFETIME_S, make_token
from kernel.database.connections import database_time
from kernel.principal import UsedConnection
from tests.support.connections import make_connection

if TYPE_CHECKING:
    from kernel.principal import Principal
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


@pytest.fixture
def held(caller: Caller, operator: Person) -> dict[HeldKind, Principal]:
    """The same agent by way of each kind."""
    connection = make_connection(agent=caller.agent, member=operator.user, name="program")
    bare = replace(caller.by, key_id=None)
    used = UsedConnection(connection.pk, "program", operator.by.id, token_ends=database_time())
    return {
        HeldKind.CONNECTION: replace(bare, connection=used),
        HeldKind.KEY: caller.by,
        HeldKind.AGENT: replace(bare, issuer_id=uuid4(), token="sha256:x"),
    }


def ended(held: dict[HeldKind, Principal]) -> set[HeldKind]:
    return {each.kind for each in find_ended_credentials(map(HeldCredential.of, held.values()))}


@pytest.mark.req("CONN-1", "CONN-4")
def test_each_kind_ends_with_what_it_is(held: dict[HeldKind, Principal], operator: Person) -> None:
    assert ended(held) == set()
    access.revoke_key(key_id=ApiKey.objects.get().pk, by=operator.by)
    assert ended(held) == {HeldKind.KEY}
    end_connection(connection_id=Connection.objects.get().pk, by=operator.by)
    assert ended(held) == {HeldKind.KEY, HeldKind.CONNECTION}


@pytest.mark.req("CONN-4")
def test_all_end_with_their_agent(held: dict[HeldKind, Principal], caller: Caller, operator: Person) -> None:
    access.disable_agent(agent_id=caller.agent.pk, reason="x", by=operator.by)

    assert ended(held) == set(HeldKind)


@pytest.mark.req("CONN-4")
def test_what_has_run_out_has_ended(held: dict[HeldKind, Principal]) -> None:
    past = database_time() - timedelta(seconds=1)
    ApiKey.objects.update(created_at=past - timedelta(days=1), expires_at=past)
    Connection.objects.update(opened_at=past - timedelta(days=1), until=past)

    assert ended(held) == {HeldKind.KEY, HeldKind.CONNECTION}


@pytest.mark.req("CONN-4")
def test_what_was_never_there_has_ended() -> None:
    unknown = {HeldCredential(kind, uuid4()) for kind in HeldKind}

    assert find_ended_credentials(unknown) == unknown
    assert find_ended_credentials([]) == set()


@pytest.mark.req("CONN-4")
def test_a_token_says_when_it_ends_and_a_key_does_not(held: dict[HeldKind, Principal], caller: Caller) -> None:
    token = make_token(ApiKey.objects.get(), scopes=["tools:read"])
    by = resolve_principal(token, address="192.0.2.7")

    ends = find_token_end(by, f"Bearer {token}")
    assert ends is not None
    assert abs((ends - database_time()).total_seconds() - HUB_LIFETIME_S) < 60
    assert find_token_end(caller.by, f"Bearer {caller.key}") is None
    connected = held[HeldKind.CONNECTION]
    assert connected.connection is not None
    assert find_token_end(connected, "Bearer hubo_x") == connected.connection.token_ends
    assert find_token_end(caller.by, "Bearer a.b.c") is None
