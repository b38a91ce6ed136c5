"""Unfinished calls on PostgreSQL: do the narrow rows keep the wide table's indexes out of a call's way, and who may write them?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db import DatabaseError, connection, transaction

from access import services as access
from invocations.models import Invocation, State
from invocations.queue.claims import claim_call, has_queued_calls
from invocations.unfinished_calls.models import UnfinishedCall
from kernel.database.connections import open_direct_connection
from kernel.database.tenancy import acting_for
from kernel.ids import new_id
from tests.support.begin_end_pairs import end_call
from tests.support.waiting_calls import waiting

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

UPDATES = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'invocations_invocation'"
KEEPER = """
SELECT proconfig, has_function_privilege('public', oid, 'EXECUTE') FROM pg_proc WHERE proname = 'toolhub_keep_unfinished_call'
"""
OWN_TABLE = (
    "CREATE TEMP TABLE own (LIKE invocations_invocation)",
    "CREATE TRIGGER keep AFTER DELETE ON own FOR EACH ROW EXECUTE FUNCTION toolhub_keep_unfinished_call()",
)
WRITES = (
    "UPDATE invocations_unfinishedcall SET state = 'held' WHERE id = %s",
    "DELETE FROM invocations_unfinishedcall WHERE id = %s",
)


READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'invocations_unfinishedcall'"


def count_read() -> int:
    """Narrow rows in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(READ)
        return int(cursor.fetchone()[0])


def count_updates(*, since: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """Of calls: all, and those that wrote no index. PostgreSQL counts with this transaction what the connection did just before it and
    has not told yet."""
    with connection.cursor() as cursor:
        cursor.execute(UPDATES)
        changed, within_the_page = cursor.fetchone()
    return changed - since[0], within_the_page - since[1]


@pytest.mark.django_db
def test_a_claim_and_an_end_write_no_index_of_calls(caller: Caller) -> None:
    waiting(caller.agent)
    before = count_updates()

    claim = claim_call()
    assert claim is not None
    assert count_updates(since=before) == (1, 1)

    end_call(claim, State.SUCCEEDED)
    assert count_updates(since=before) == (2, 2)


@pytest.mark.req("TOOLS-27")
@pytest.mark.django_db
def test_a_claim_reads_none_of_the_calls_that_wait_for_people(caller: Caller) -> None:
    of_person = {"tenant_id": caller.agent.tenant_id, "state": State.HELD, "held": True}
    UnfinishedCall.objects.bulk_create(
        UnfinishedCall(id=new_id(), work_class="quick", of_model=False, **of_person) for _ in range(5_000)
    )
    waiting(caller.agent, count=2)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE invocations_unfinishedcall")
    before = count_read()

    assert claim_call() is not None
    assert has_queued_calls()
    assert count_read() - before < 20

    UnfinishedCall.objects.filter(state=State.HELD).delete()


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_a_call_that_somebody_has_locked_is_passed_over(caller: Caller) -> None:
    first, second = waiting(caller.agent, count=2)
    with open_direct_connection() as holder, holder.transaction(force_rollback=True):
        holder.execute("UPDATE invocations_invocation SET cancel_asked_at = now() WHERE id = %s", [first.pk])

        turns = [claim_call(), claim_call()]
        assert [turn and turn.pk for turn in turns] == [second.pk, None]

    turn = claim_call()
    assert turn is not None
    assert turn.pk == first.pk


@pytest.mark.django_db
def test_a_tenant_sees_its_own_narrow_rows_and_writes_none(caller: Caller, stranger: Person) -> None:
    (mine,) = waiting(caller.agent)
    (theirs,) = waiting(access.create_agent(name="theirs", by=stranger.by))

    with acting_for(mine.tenant_id):
        assert list(UnfinishedCall.objects.values_list("pk", flat=True)) == [mine.pk]
        with connection.cursor() as cursor:
            for write in WRITES:
                cursor.execute(write, [mine.pk])
                assert cursor.rowcount == 0
        with pytest.raises(DatabaseError), transaction.atomic():
            UnfinishedCall.objects.create(
                id=theirs.pk, tenant_id=mine.tenant_id, state="queued", work_class="quick", of_model=False, held=False
            )
        Invocation.objects.filter(pk=mine.pk).update(work_class="long")  # its narrow row follows all the same

    assert dict(UnfinishedCall.objects.values_list("pk", "work_class")) == {mine.pk: "long", theirs.pk: "quick"}


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_a_tenant_has_no_narrow_row_written_by_a_table_of_its_own(caller: Caller) -> None:
    (mine,) = waiting(caller.agent)

    with (
        acting_for(mine.tenant_id),
        pytest.raises(DatabaseError, match="permission denied for function"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        for statement in OWN_TABLE:
            cursor.execute(statement)


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_what_keeps_narrow_rows_keeps_them_of_no_other_table(caller: Caller) -> None:
    (mine,) = waiting(caller.agent)

    with (
        pytest.raises(DatabaseError, match="of calls only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        for statement in OWN_TABLE:  # as a restore without rights would let anybody
            cursor.execute(statement)
        cursor.execute("INSERT INTO own SELECT * FROM invocations_invocation WHERE id = %s", [mine.pk])
        cursor.execute("DELETE FROM own")

    assert UnfinishedCall.objects.filter(pk=mine.pk).exists()


@pytest.mark.req("TOOLS-22")
@pytest.mark.django_db
def test_what_keeps_narrow_rows_calls_nothing_that_others_have_made(caller: Caller) -> None:
    with connection.cursor() as cursor:
        cursor.execute(KEEPER)
        assert cursor.fetchall() == [(["search_path=pg_catalog, pg_temp"], False)]
        # Nearer to what is called than PostgreSQL's own, since the name of a tool is a varchar.
        cursor.execute(
            "CREATE FUNCTION public.substr(varchar, integer, integer) RETURNS text LANGUAGE sql AS $$ SELECT 'model.' $$"
        )

    (call,) = waiting(caller.agent)

    assert not UnfinishedCall.objects.get(pk=call.pk).of_model
