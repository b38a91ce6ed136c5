"""Lease locks: does a run keep its lease while somebody keeps the row of another run locked, and is only that other run given up?"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from invocations.models import Invocation
from invocations.queue.claims import claim_call
from invocations.run.lease_heartbeat import keep_lease
from kernel.database.connections import open_direct_connection
from tests.support.background_runs import wait_for
from tests.support.calls import row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
LOCK = "UPDATE invocations_invocation SET cancel_asked_at = now() WHERE id = %s"
LONG_S = 30.0


@pytest.fixture
def two_runs(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> list[Invocation]:
    """Claimed by this process, and nothing runs them."""
    enable()
    grant()
    bell.answers = False
    for text in ("x", "y"):
        row_of(caller.invoke("sample.tools.echo", {"text": text}, headers={"Prefer": "respond-async"}))
    found = [claim_call(), claim_call()]
    assert all(found)
    return [each for each in found if each is not None]


def lease_of(call: Invocation) -> object:
    return Invocation.objects.values_list("lease_until", flat=True).get(pk=call.pk)


@contextmanager
def locked(id: UUID) -> Iterator[None]:
    """As by a process that was stopped between its statement and its commit, which never comes."""
    with open_direct_connection() as holder, holder.transaction(force_rollback=True):
        holder.execute(LOCK, [id])
        yield


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_a_run_whose_row_is_locked_is_given_up_alone(
    two_runs: list[Invocation], sandbox: ScriptedSandbox, settings: Any
) -> None:
    settings.TOOLHUB_LEASE_S = 5
    first, second = two_runs
    leases = [lease_of(first), lease_of(second)]
    with keep_lease(first) as lost, keep_lease(second) as kept, locked(first.pk):
        wait_for(lambda: lost.box in sandbox.killed)

        assert (lost.given_up, kept.given_up, kept.unwanted) == (True, False, False)
        assert kept.box not in sandbox.killed
        assert [lease_of(first) == leases[0], lease_of(second) == leases[1]] == [True, False]


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_a_run_whose_row_was_locked_for_a_moment_keeps_its_lease(
    two_runs: list[Invocation], sandbox: ScriptedSandbox, settings: Any
) -> None:
    settings.TOOLHUB_LEASE_S = 15
    first, second = two_runs
    with keep_lease(first) as waits, keep_lease(second) as kept:
        begun_at, others_at = waits.kept_at, kept.kept_at
        with locked(first.pk):
            wait_for(lambda: kept.kept_at > others_at)  # and the first was due before it
            assert (waits.kept_at, waits.unwanted) == (begun_at, False)

        wait_for(lambda: waits.kept_at > begun_at)
        assert (waits.unwanted, waits.given_up) == (False, False)


@pytest.mark.req("TOOLS-18", "TOOLS-20")
def test_beside_a_locked_row_a_run_that_is_not_this_workers_any_more_is_ended(
    two_runs: list[Invocation], sandbox: ScriptedSandbox, settings: Any
) -> None:
    settings.TOOLHUB_LEASE_S = 15
    first, second = two_runs
    with keep_lease(first) as waits, keep_lease(second) as lost, locked(first.pk):
        Invocation.objects.filter(pk=second.pk).update(attempt=99)

        wait_for(lambda: lost.box in sandbox.killed)
        assert (waits.unwanted, waits.given_up) == (False, False)


@pytest.mark.unmapped
def test_who_closes_a_run_waits_for_a_thread_that_is_just_started_to_end_it(
    two_runs: list[Invocation], sandbox: ScriptedSandbox, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting, closed = threading.Event(), threading.Event()
    failed: list[BaseException] = []
    start = threading.Thread.start

    def start_late(thread: threading.Thread) -> None:
        if thread.name.startswith("end-"):
            starting.set()
            closed.wait(1)  # in vain
        start(thread)

    def close() -> None:
        try:
            watch.close()
        except RuntimeError as error:  # what threading says to who joins a thread that is not started
            failed.append(error)
        closed.set()

    monkeypatch.setattr(threading.Thread, "start", start_late)
    with keep_lease(two_runs[0]) as watch:
        threads = [threading.Thread(target=watch.end_run), threading.Thread(target=close)]
        threads[0].start()
        assert starting.wait(LONG_S)
        threads[1].start()
        for each in threads:
            each.join(LONG_S)

    assert failed == []
    assert closed.is_set()
    assert [each.name for each in threading.enumerate() if each.name == f"end-{two_runs[0].wire_id}"] == []
