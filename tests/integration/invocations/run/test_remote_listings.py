"""Remote listings: which calls may have met a change, are they all named, and is the tool paused however many there are?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from access.models import AccountServer, ServerAccount
from invocations.models import Invocation, State
from invocations.problems import OutputInvalid, ToolDrifted
from invocations.run import remote_listings
from kernel.database.connections import database_time
from kernel.ids import lowest_id, new_id
from registry.installations.drift import PARTS, UnheldCalls, note_listing_held, pause_drifted
from registry.installations.services import MAX_REASON
from registry.models import Installation, InstallationState, ToolVersion
from tests.support.begin_end_pairs import keep_calls

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from registry.models import Tool
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(enable: Callable[..., Tool]) -> ToolVersion:
    return ToolVersion.objects.select_related("tool").get(tool=enable())


@pytest.fixture
def call(caller: Caller, version: ToolVersion) -> Callable[..., Invocation]:
    """``call(begun, ended)``: a call of the tool that ran between these."""

    def make(
        begun: datetime | None, ended: datetime | None, *, id: UUID | None = None, account: Any = None, reason: str = ""
    ) -> Invocation:
        over = State.FAILED if reason else State.SUCCEEDED
        row = Invocation(
            id=id or new_id(),
            tenant_id=caller.agent.tenant_id,
            agent=caller.agent,
            tool=version.tool.name,
            version=version,
            account_id=account.pk if account else None,
            state=over if ended else State.RUNNING if begun else State.QUEUED,
            reason=reason,
            request_id="by-hand",
            arguments_fingerprint="x",
            created_at=begun or database_time(),
            started_at=begun,
            finished_at=ended,
        )
        return keep_calls(row)[0]

    return make


@pytest.fixture
def accounts(caller: Caller) -> list[ServerAccount]:
    tenant = caller.agent.tenant
    server = AccountServer.objects.create(tenant=tenant, resource="https://shop.example.com/mcp")
    people = [get_user_model().objects.create(username=name) for name in ("ann", "ben")]
    return [ServerAccount.objects.create(tenant=tenant, member=each, server=server) for each in people]


@pytest.mark.req("BRING-3")
def test_calls_that_ended_after_the_last_look_are_named_whoever_made_them(
    call: Callable[..., Invocation], accounts: list[ServerAccount], version: ToolVersion
) -> None:
    now, second = database_time(), timedelta(seconds=1)
    since = now - 60 * second
    ann, ben = accounts
    note_listing_held(tenant_id=ann.tenant_id, version=version, account_id=ann.pk, at=since)
    before = call(since - 9 * second, since - second, account=ann)
    named = [
        call(
            since, since + second, account=ann
        ),  # the one that has looked: the change may have come between its look and its call
        call(since - second, since + second, account=ann),  # it met whatever there was when it ended
        call(since + second, None, account=ann),
        call(since + second, now, account=ben),
    ]
    queued = call(None, None, account=ann)
    drifted = call(since + second, now, account=ben, reason=ToolDrifted.reason)
    last = call(now, now, account=ann, reason=ToolDrifted.reason)
    first_of_ben = call(now, now, account=ben, reason=ToolDrifted.reason)

    said = remote_listings._describe_unheld(last, version)

    assert said.startswith(" 4 calls ran after ")
    assert all(each.wire_id in said for each in named[1:])
    assert said.endswith(" and others.")
    assert not any(each.wire_id in said for each in (before, queued, drifted, last))
    # Of an account that has not looked itself, since anybody has.
    assert remote_listings._describe_unheld(first_of_ben, version) == said


@pytest.mark.req("BRING-3")
def test_no_call_looks_at_all_that_ever_were(
    call: Callable[..., Invocation], version: ToolVersion, settings: Any
) -> None:
    settings.TOOLHUB_HOLD_S = 3600
    now = database_time()
    note_listing_held(tenant_id=version.tool.tenant_id, version=version, at=now - timedelta(seconds=9))
    longest = timedelta(hours=1) + remote_listings.QUEUED_AND_RUN
    older = lowest_id(now - longest - timedelta(minutes=1))
    call(now, now, id=older, reason=OutputInvalid.reason)
    asking = call(now, None)

    with CaptureQueriesContext(connection) as asked:
        assert not remote_listings._is_doubtful(asking, version)
        assert remote_listings._find_unheld(asking, version) is None
    call(now, now, id=lowest_id(now - longest + timedelta(minutes=1)), reason=OutputInvalid.reason)

    looks = [each["sql"] for each in asked if 'FROM "invocations_invocation"' in each["sql"]]
    assert looks
    assert all('"invocations_invocation"."id" >= ' in each for each in looks)
    assert remote_listings._is_doubtful(asking, version)


@pytest.mark.req("BRING-3")
def test_a_tool_is_paused_however_much_there_is_to_say_of_it(version: ToolVersion, caller: Caller) -> None:
    ids = [Invocation(id=new_id()).wire_id for _ in range(remote_listings.MAX_NAMED)]
    unheld = UnheldCalls(database_time(), 1_234_567, ids).describe()

    assert pause_drifted(
        tenant_id=caller.agent.tenant_id, version=version, changed=sorted(PARTS), unheld=unheld + "x" * MAX_REASON
    )
    row = Installation.objects.get(name=version.tool.name)
    assert row.state == InstallationState.PAUSED
    assert ids[0] in row.reason
    assert row.reason.endswith("…")
    assert len(row.reason) <= MAX_REASON
