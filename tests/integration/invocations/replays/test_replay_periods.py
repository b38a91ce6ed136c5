"""Replay periods: are the calls of a period gone through once each, whatever happens to the worker, and is it said what would
change?
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection

from evidence.leaves.call_begins import Begin
from evidence.models import Fact
from invocations.models import Invocation
from invocations.replays import batches, services
from invocations.replays import worker as replays_worker
from invocations.replays.models import Replay, Rerun
from invocations.replays.outbox import relay_waiting_replays
from invocations.replays.redecision import Redecider
from invocations.run_profiles import services as run_profiles
from invocations.run_profiles.models import RunProfile
from kernel.fault_injection import REPLAYING
from kernel.problems import Conflict, SchemaInvalid
from tests.support.calls import row_of
from tests.support.policies_in_force import forbid, permit, put_in_force
from tests.support.replays import WHY, replay, replayed_tool, work_through

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
DRAWS = "sample.tools.draws"


@pytest.fixture
def calls(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell
) -> Callable[[int], list[Invocation]]:
    """``calls(3)``: so many calls of a tool that can be replayed, in the sandbox of the tests."""
    enable(**replayed_tool("draws"))
    grant()
    return lambda count: [row_of(caller.invoke(DRAWS, {"text": str(each)})) for each in range(count)]


def ask(by: Any, what: str = "runs", **more: Any) -> Replay:
    now = datetime.now(UTC)
    period = {"since": now - timedelta(hours=1), "until": now + timedelta(hours=1)}
    return services.replay_period(what=what, reason=WHY, by=by, **(period | more))


def done(row: Replay) -> Replay:
    work_through()
    row.refresh_from_db()
    return row


@pytest.mark.req("TOOLS-28")
def test_each_call_of_a_period_is_run_again_once(calls: Callable[..., Any], auditor: Person) -> None:
    made = calls(3)

    row = done(ask(auditor.by))

    assert (row.state, row.done, row.total, row.result["counts"]) == ("ended", 3, 3, {"match": 3})
    assert {each.invocation_id for each in row.reruns.all()} == {each.pk for each in made}
    ended = Fact.objects.get(kind="replay.ended", subject=row.wire_id)
    assert json.loads(bytes(ended.leaf))["data"]["counts"] == {"match": 3}


@pytest.mark.req("TOOLS-28")
@pytest.mark.parametrize("document", [None, {"limits": {"wall_ms": 5}}], ids=["taken away", "changed"])
def test_a_call_whose_profile_is_not_as_it_was_ends_no_period(
    document: Any, calls: Callable[..., Any], auditor: Person
) -> None:
    made = calls(2)
    kept = RunProfile.objects.filter(digest=made[0].profile_hash)
    assert kept.delete()[0] if document is None else kept.update(document=document)
    run_profiles._load.cache_clear()  # a worker that has not run one of them

    row = done(ask(auditor.by))
    single = replay(made[0], by=auditor.by)

    assert (row.state, row.result["counts"], row.result["whys"]) == ("ended", {"cannot": 2}, {"profile": 2})
    assert (single.state, single.verdict, single.reruns.get().why) == ("ended", "cannot", "profile")
    assert "profile_document" in {each["field"] for each in single.result["findings"] if each["verdict"] == "differs"}


@pytest.mark.req("TOOLS-28")
def test_what_another_version_would_answer_is_counted_and_named(
    calls: Callable[..., Any], enable: Callable[..., Tool], auditor: Person, caller: Caller
) -> None:
    calls(2)
    enable(
        **replayed_tool("draws", version="2.0.0")
        | {"implementation": {"module": "sample.replayed", "entry": "needs_a_secret"}}
    )

    row = done(ask(auditor.by, tool=DRAWS, version="2.0.0"))

    assert row.result["counts"] == {"differs": 2}
    assert row.result["changes"] == {"succeeded → failed": 2}
    assert {each.version for each in row.reruns.all()} == {"2.0.0"}


@pytest.mark.req("TOOLS-28")
def test_a_period_may_begin_before_time_was_counted(calls: Callable[..., Any], auditor: Person) -> None:
    calls(1)

    row = done(ask(auditor.by, "facts", since=datetime(1, 1, 2, tzinfo=UTC)))

    assert (row.state, row.done) == ("ended", 1)


@pytest.mark.req("TOOLS-28", "SPEC-7")
def test_the_recorded_policy_decides_every_call_as_it_did(
    calls: Callable[..., Any], auditor: Person, tenant: Tenant, caller: Caller
) -> None:
    put_in_force(permit(), forbid("no-x", origin={"equals": "llm"}), tenant=tenant)
    calls(2)
    put_in_force(permit(), forbid("none", tool={"equals": DRAWS}), tenant=tenant)
    denied = row_of(caller.invoke(DRAWS, {"text": "x"}))
    assert denied.reason.startswith("POLICY.")

    row = done(ask(auditor.by, "decisions"))

    assert row.result["counts"] == {"same": 3}
    said = Fact.objects.get(kind="invocation.began", invocation_id=denied.pk).content["data"]
    said["decision"]["allowed"] = True
    assert Redecider().look(Begin.from_data(said), tenant.pk).why == "allowed"
    said["policy"]["version"] = "builtin@2 tenant@9"
    assert Redecider().look(Begin.from_data(said), tenant.pk).verdict == "not_kept"


@pytest.mark.req("TOOLS-28", "TOOLS-9")
def test_a_policy_that_is_not_in_force_is_tried_on_the_period(
    calls: Callable[..., Any], auditor: Person, tenant: Tenant
) -> None:
    made = calls(2)
    stricter = put_in_force(permit(), forbid("none", tool={"equals": DRAWS}), tenant=tenant)
    put_in_force(permit(), tenant=tenant)

    row = done(ask(auditor.by, "decisions", policy_id=stricter.pk))

    assert row.result["counts"]["now_denied"] == 2
    named = {each["invocation"] for group in row.result["simulation"]["groups"] for each in group["examples"]}
    assert named == {each.wire_id for each in made}


@pytest.mark.req("TOOLS-28", "SPEC-7")
def test_a_call_whose_row_was_changed_is_found_among_those_of_a_period(
    calls: Callable[..., Any], auditor: Person
) -> None:
    made = calls(3)
    Invocation.objects.filter(pk=made[1].pk).update(policy_hash="sha256:" + "0" * 64)

    row = done(ask(auditor.by, "facts"))

    assert row.result["counts"] == {"equal": 2, "differs": 1}
    assert row.result["calls"] == [{"invocation": str(made[1].pk), "fields": ["policy_hash"]}]
    Invocation.objects.filter(pk=made[1].pk).update(policy_hash=made[1].policy_hash)


@pytest.mark.req("TOOLS-28")
def test_a_replay_takes_no_more_calls_than_it_may_and_goes_on_where_it_was(
    calls: Callable[..., Any], auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls(3)
    row = ask(auditor.by, most=2)
    monkeypatch.setattr(replays_worker, "PIECE_S", 0.0)

    assert replays_worker.run_next_batch()
    row.refresh_from_db()
    assert (row.state, row.done, row.total) == ("queued", 1, 2)
    assert (done(row).state, row.done) == ("ended", 2)
    assert not replays_worker.run_next_batch()


@pytest.mark.req("TOOLS-28")
def test_a_replay_is_cancelled_before_and_between_calls(
    calls: Callable[..., Any], auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls(2)
    waiting, running = ask(auditor.by), ask(auditor.by)
    services.cancel_replay(replay_id=waiting.pk, by=auditor.by)

    def cancelled(row: Replay) -> Any:
        piece = batches.build_runs_batch(row)
        Replay.objects.filter(pk=row.pk).update(cancel_asked_at=datetime.now(UTC))
        return piece

    monkeypatch.setitem(batches.PIECES, "runs", cancelled)
    row = done(running)

    assert (row.state, row.done, row.reruns.count()) == ("cancelled", 1, 1)
    assert Replay.objects.get(pk=waiting.pk).state == "cancelled"
    assert Fact.objects.filter(kind="replay.ended", outcome="cancelled").count() == 2
    with pytest.raises(Conflict):
        services.cancel_replay(replay_id=row.pk, by=auditor.by)


@pytest.mark.req("TOOLS-28")
def test_who_lost_the_lease_writes_nothing(
    calls: Callable[..., Any], auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls(1)
    row = ask(auditor.by)

    def slow(claimed: Replay) -> Any:
        piece = batches.build_runs_batch(claimed)
        Replay.objects.filter(pk=row.pk).update(attempt=claimed.attempt + 1)  # another worker has it
        return piece

    monkeypatch.setitem(batches.PIECES, "runs", slow)
    replays_worker.run_next_batch()

    row.refresh_from_db()
    assert (row.done, row.state, Rerun.objects.count()) == (0, "running", 0)


@pytest.mark.req("TOOLS-28")
def test_a_worker_has_one_replay_at_a_time_so_that_calls_find_a_thread(
    calls: Callable[..., Any], auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls(1)
    rows = [ask(auditor.by), ask(auditor.by)]
    meanwhile: list[bool] = []

    def long(claimed: Replay) -> Any:
        meanwhile.append(replays_worker.run_next_batch())  # another thread of this worker hears the other message
        return batches.build_runs_batch(claimed)

    monkeypatch.setitem(batches.PIECES, "runs", long)
    states = [done(row).state for row in rows]

    assert meanwhile == [False, False]
    assert states == ["ended", "ended"]


@pytest.mark.req("TOOLS-28")
def test_what_fails_again_and_again_is_given_up(calls: Callable[..., Any], auditor: Person) -> None:
    row = ask(auditor.by)
    past = datetime.now(UTC) - timedelta(minutes=1)
    Replay.objects.update(state="running", crashes=replays_worker.MAX_CRASHES - 1, lease_until=past, notified_at=past)

    assert relay_waiting_replays() == 1
    assert done(row).state == "failed"
    assert Fact.objects.filter(kind="replay.ended", outcome="failed").count() == 1


@pytest.mark.req("TOOLS-28")
def test_wishes_that_cannot_be_met_are_refused_with_the_field(
    calls: Callable[..., Any], auditor: Person, tenant: Tenant
) -> None:
    now, policy = datetime.now(UTC), put_in_force(permit(), tenant=tenant)
    unreadable = put_in_force(permit(tool="not an atom"), tenant=tenant)
    wishes: list[tuple[dict[str, Any], str]] = [
        ({"what": "dreams"}, "/what"),
        ({"until": now - timedelta(days=9)}, "/until"),
        ({"most": 1_001}, "/most"),
        ({"version": "2.0.0"}, "/version"),
        ({"version": "2.0.0", "tool": DRAWS}, "/version"),
        ({"version": "2.0.0", "tool": "no.such.tool"}, "/tool"),
        ({"policy_id": policy.pk}, "/policy"),
        ({"policy_id": unreadable.pk, "what": "decisions"}, "/policy"),
    ]
    for wish, pointer in wishes:
        with pytest.raises(SchemaInvalid) as refused:
            ask(auditor.by, **wish)
        assert refused.value.details["findings"][0]["pointer"] == pointer
    assert not Replay.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("point", REPLAYING)
@pytest.mark.req("TOOLS-28")
def test_a_worker_that_is_killed_in_a_replay_costs_no_call_and_doubles_none(
    calls: Callable[..., Any], auditor: Person, point: str
) -> None:
    calls(3)
    row = ask(auditor.by, "decisions")
    worker = [sys.executable, "-m", "tests.support.replay_worker_process", str(connection.settings_dict["NAME"])]
    ended = []
    for _ in range(2):
        env = os.environ | {"TOOLHUB_FAULTS": f"{point}=kill"}
        ended.append(
            subprocess.run(worker, cwd=settings.BASE_DIR, env=env, capture_output=True, check=False).returncode
        )
        Replay.objects.update(lease_until=datetime.now(UTC) - timedelta(seconds=1))

    assert ended == [-signal.SIGKILL] * 2
    assert (done(row).state, row.done, row.result["counts"]) == ("ended", 3, {"same": 3})
    assert Fact.objects.filter(kind="replay.ended", subject=row.wire_id).count() == 1
