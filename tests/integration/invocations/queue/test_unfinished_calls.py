"""Unfinished calls: does the database keep the narrow rows of what waits and runs, whoever writes the calls?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction

from invocations.call_outcomes import build_state_filter
from invocations.models import Invocation, State
from invocations.queue.claims import claim_call
from invocations.queue.sweeper import sweep_once
from invocations.unfinished_calls import lost_rows
from invocations.unfinished_calls.lost_rows import find_lost_rows
from invocations.unfinished_calls.models import UnfinishedCall
from invocations.unfinished_calls.triggers import keep_unfinished_calls, unfinished_call_triggers
from kernel.database.triggers import missing_triggers
from kernel.ids import new_id
from tests.support.begin_end_pairs import end_call, keep_calls
from tests.support.waiting_calls import waiting
from toolhub.database.post_migration import after_migration
from toolhub.management.commands import doctor

if TYPE_CHECKING:
    from uuid import UUID

    from tests.conftest import Caller

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, tzinfo=UTC)
# What changes while a call waits and runs, and with its end.
CHANGING = (
    "state",
    "attempt",
    "lease_until",
    "notified_at",
    "started_at",
    "finished_at",
    "progress",
    "output_digest",
    "steps",
)


def narrow(call: Invocation, *columns: str) -> Any:
    return UnfinishedCall.objects.values_list(*columns).filter(pk=call.pk).first()


def ask_what_is_put_off() -> None:
    """PostgreSQL alters no table about which it has yet to ask something."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute("SET CONSTRAINTS ALL DEFERRED")


@pytest.mark.req("TOOLS-27")
def test_a_call_has_a_narrow_row_until_it_ends(caller: Caller) -> None:
    (call,) = waiting(caller.agent, work_class="long", notified_at=NOW)
    assert narrow(call, "tenant_id", "state", "work_class", "notified_at", "overdue_at") == (
        *(call.tenant_id, State.QUEUED, "long", NOW),
        call.queue_deadline_at,
    )

    claim = claim_call()
    assert claim is not None
    assert narrow(call, "state", "overdue_at") == (State.RUNNING, claim.lease_until)

    later = NOW + timedelta(days=1)
    Invocation.objects.filter(pk=call.pk).update(state=State.HELD, held_until=later)
    assert narrow(call, "state", "overdue_at") == (State.HELD, later)

    end_call(call, State.SUCCEEDED)
    assert narrow(call, "state") is None


def test_a_call_that_ends_as_it_begins_has_none(caller: Caller) -> None:
    (waits,) = waiting(caller.agent)
    refused = Invocation.objects.get(pk=waits.pk)
    refused.pk, refused.state, refused.finished_at = new_id(), State.DENIED, NOW

    keep_calls(refused)

    assert list(UnfinishedCall.objects.values_list("pk", flat=True)) == [waits.pk]


def test_a_row_that_was_loaded_before_its_call_says_what_the_call_says(caller: Caller) -> None:
    """As `loaddata` has them in either order."""
    (waits,) = waiting(caller.agent)
    other = Invocation.objects.get(pk=waits.pk)
    other.pk, other.state, other.held_until = new_id(), State.HELD, NOW
    UnfinishedCall.objects.create(
        id=other.pk, tenant_id=other.tenant_id, state=State.QUEUED, work_class="quick", of_model=True, held=False
    )

    keep_calls(other)

    assert narrow(other, "state", "of_model", "held", "overdue_at") == (State.HELD, False, True, NOW)


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.HELD])
def test_calls_of_a_state_are_found_by_their_narrow_rows(state: State, caller: Caller) -> None:
    calls = waiting(caller.agent, count=3)
    Invocation.objects.filter(pk=calls[1].pk).update(state=state)

    found = set(Invocation.objects.filter(build_state_filter(state)).values_list("pk", flat=True))

    assert found == ({each.pk for each in calls} if state == State.QUEUED else {calls[1].pk})


@pytest.mark.req("TOOLS-5")
def test_a_second_running_call_of_a_serial_tool_is_refused_whoever_writes_it(caller: Caller) -> None:
    one, other = waiting(caller.agent, tool="sample.tools.one", count=2, serial=True)  # from before the key
    Invocation.objects.filter(pk=one.pk).update(state=State.RUNNING)

    with pytest.raises(IntegrityError), transaction.atomic():
        Invocation.objects.filter(pk=other.pk).update(state=State.RUNNING)

    assert narrow(one, "serial_key", "running_key") == ("sample.tools.one", "sample.tools.one")
    assert narrow(other, "serial_key", "running_key") == ("sample.tools.one", "")


def test_rows_are_made_anew_with_triggers_that_were_gone(caller: Caller) -> None:
    wanted = unfinished_call_triggers(connection.vendor)
    assert missing_triggers(connection, wanted) == []
    ended, waits = waiting(caller.agent, count=2)
    ask_what_is_put_off()
    with connection.cursor() as cursor:
        for each in wanted:
            cursor.execute(
                f"DROP TRIGGER {each.name}" + (f" ON {each.table}" if connection.vendor == "postgresql" else "")
            )
    end_call(ended, State.SUCCEEDED)
    (later,) = waiting(caller.agent)
    ask_what_is_put_off()
    assert set(UnfinishedCall.objects.values_list("pk", flat=True)) == {ended.pk, waits.pk}

    keep_unfinished_calls(connection)

    assert set(UnfinishedCall.objects.values_list("pk", flat=True)) == {waits.pk, later.pk}
    assert missing_triggers(connection, wanted) == []


def lose_rows(caller: Caller) -> dict[UUID, Any]:
    """As a hand in the database does it: one is gone, one says something else, and one is of no call that goes on."""
    gone, other, right = waiting(caller.agent, count=3)
    UnfinishedCall.objects.filter(pk=gone.pk).delete()
    UnfinishedCall.objects.filter(pk=other.pk).update(work_class="long", overdue_at=None)
    stray = UnfinishedCall.objects.get(pk=other.pk)
    UnfinishedCall.objects.create(
        **{each.name: getattr(stray, each.name) for each in stray._meta.fields} | {"id": new_id()}
    )
    return {each.pk: each.queue_deadline_at for each in (gone, other, right)}


def all_rows() -> dict[UUID, Any]:
    return dict(UnfinishedCall.objects.filter(work_class="quick").values_list("pk", "overdue_at"))


@pytest.mark.req("TOOLS-27")
def test_rows_that_were_lost_are_made_again_by_a_migration(caller: Caller) -> None:
    wanted = lose_rows(caller)
    assert len(find_lost_rows(connection)) == 3
    with pytest.raises(LookupError, match="The queue knows 3 calls otherwise"):
        doctor.database()

    after_migration(using="default")

    assert (all_rows(), find_lost_rows(connection)) == (wanted, [])
    doctor.database()


def test_a_sweeper_looks_for_lost_rows_now_and_then_among_so_many_calls(
    caller: Caller, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(lost_rows, "watch", lost_rows.LostRowWatch())
    wanted = lose_rows(caller)

    assert [sweep_once()["narrow_rows_mended"] for _ in range(2)] == [3, 0]
    assert all_rows() == wanted

    monkeypatch.setattr(lost_rows, "BATCH", 2)
    monkeypatch.setattr(lost_rows, "LOOK_EVERY_S", 0.0)
    watch = lost_rows.LostRowWatch()
    UnfinishedCall.objects.filter(pk=min(wanted)).delete()
    # The third call is among the second two; then it begins anew with the newest.
    assert [watch.look() for _ in range(3)] == [0, 1, 0]
    UnfinishedCall.objects.filter(pk=max(wanted)).delete()
    assert watch.look() + watch.look() == 1
    assert all_rows() == wanted

    monkeypatch.setattr(lost_rows, "BATCH", 1)
    watch = lost_rows.LostRowWatch()
    UnfinishedCall.objects.filter(pk=min(wanted)).delete()
    settings.TOOLHUB_HOLD_S = -10 * 24 * 3600  # all of them are too old to wait
    assert [watch.look() for _ in range(4)] == [0, 0, 0, 0]
    settings.TOOLHUB_HOLD_S = 3600
    assert [watch.look() for _ in range(3)] == [0, 0, 1]


def test_no_index_of_calls_has_to_do_with_what_changes_while_they_wait_and_run() -> None:
    """Else PostgreSQL writes an entry into each of its indexes with each of these changes."""
    if connection.vendor != "postgresql":
        assert not [each for each in Invocation._meta.indexes if set(each.fields) & set(CHANGING)]
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexdef FROM pg_indexes WHERE tablename = 'invocations_invocation'")
        found = [definition for (definition,) in cursor.fetchall()]

    assert len(found) > 10
    assert [each for each in found if any(column in each.partition(" USING ")[2] for column in CHANGING)] == []
