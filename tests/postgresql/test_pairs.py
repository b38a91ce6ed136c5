"""Pairs: does PostgreSQL refuse a call without its Begin or its End, whoever writes it?"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction

from evidence import services as evidence
from evidence.kinds import Kind
from evidence.models import Fact
from invocations.end.end_record import build_caller_principal
from invocations.models import Invocation, State
from kernel.ids import new_id
from tests.support.begin_end_pairs import keep_calls, without_their_pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import Caller

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def call_of(caller: Caller, **more: Any) -> Invocation:
    said = {"state": State.QUEUED, "created_at": NOW, "id": new_id()} | more
    return Invocation(tenant=caller.agent.tenant, agent=caller.agent, tool="a.b.c", arguments_fingerprint="x", **said)


def witness(call: Invocation, kind: Kind, outcome: str = "") -> None:
    evidence.record(
        kind=kind, subject=call.wire_id, actor=build_caller_principal(call), invocation_id=call.pk, outcome=outcome
    )


def begun(caller: Caller, **more: Any) -> Invocation:
    return keep_calls(call_of(caller, **more))[0]


def no_begin(caller: Caller) -> None:
    call_of(caller).save()


def refused_without_end(caller: Caller) -> None:
    call = call_of(caller, state=State.DENIED, finished_at=NOW)
    call.save()
    witness(call, Kind.INVOCATION_BEGAN)


def ended_without_end(caller: Caller) -> None:
    Invocation.objects.filter(pk=begun(caller).pk).update(state=State.FAILED, finished_at=NOW)


def end_of_a_call_that_goes_on(caller: Caller) -> None:
    witness(begun(caller), Kind.INVOCATION_ENDED, "failed")


def end_that_says_something_else(caller: Caller) -> None:
    call = begun(caller)
    Invocation.objects.filter(pk=call.pk).update(state=State.FAILED, finished_at=NOW)
    witness(call, Kind.INVOCATION_ENDED, "succeeded")


def begin_of_no_call(caller: Caller) -> None:
    witness(call_of(caller), Kind.INVOCATION_BEGAN)


def end_of_no_call(caller: Caller) -> None:
    witness(call_of(caller), Kind.INVOCATION_ENDED, "failed")


def begin_of_a_dry_run(caller: Caller) -> None:
    call = call_of(caller)
    call.save()
    witness(call, Kind.DRY_RUN_BEGAN)


def both_kinds_of_begin(caller: Caller) -> None:
    witness(begun(caller), Kind.DRY_RUN_BEGAN)


def real_call_made_a_dry_run(caller: Caller) -> None:
    Invocation.objects.filter(pk=begun(caller).pk).update(dry_run=True)


def end_taken_back(caller: Caller) -> None:
    call = begun(caller, state=State.FAILED, finished_at=NOW)
    Invocation.objects.filter(pk=call.pk).update(state=State.QUEUED, finished_at=None)


def other_end_afterwards(caller: Caller) -> None:
    call = begun(caller, state=State.FAILED, finished_at=NOW)
    Invocation.objects.filter(pk=call.pk).update(state=State.SUCCEEDED)


def call_removed(caller: Caller) -> None:
    Invocation.objects.filter(pk=begun(caller).pk)._raw_delete("default")


BROKEN = [
    no_begin,
    refused_without_end,
    ended_without_end,
    end_of_a_call_that_goes_on,
    end_that_says_something_else,
    begin_of_no_call,
    end_of_no_call,
    begin_of_a_dry_run,
    both_kinds_of_begin,
    real_call_made_a_dry_run,
    end_taken_back,
    other_end_afterwards,
    call_removed,
]


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("write", BROKEN, ids=lambda write: write.__name__)
def test_a_transaction_that_breaks_a_pair_is_refused(write: Callable[[Caller], None], caller: Caller) -> None:
    with pytest.raises(IntegrityError, match=r"Call [0-9a-f-]{36} (has|is)"), transaction.atomic():
        write(caller)
        assert len(without_their_pair()) == 1  # what the suite is asked after each test finds it too
        connection.check_constraints()  # as COMMIT does

    assert without_their_pair() == []
    assert not Invocation.objects.exists()


@pytest.mark.req("TOOLS-18")
@pytest.mark.django_db(transaction=True)
def test_it_is_refused_at_commit_with_all_that_was_done_beside_it_also_as_a_replica(caller: Caller) -> None:
    before = Fact.objects.count()

    with pytest.raises(IntegrityError, match="has no Begin"), transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
        evidence.record(kind=Kind.TOOL_PAUSED, subject="soul:tool:a.b.c", actor=caller.by)
        no_begin(caller)

    assert (Invocation.objects.count(), Fact.objects.count()) == (0, before)


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("dry_run", [True, False])
def test_whole_pairs_pass(dry_run: bool, caller: Caller) -> None:
    keep_calls(
        call_of(caller, dry_run=dry_run), call_of(caller, dry_run=dry_run, state=State.CANCELLED, finished_at=NOW)
    )

    connection.check_constraints()
