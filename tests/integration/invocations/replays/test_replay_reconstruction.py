"""Replay reconstruction: can a call be rebuilt from its facts alone, and is every change of its row seen?"""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from access.budgets.services import set_budget
from evidence.models import Snapshot
from invocations.models import Attempt, Invocation
from invocations.queue.claims import claim_call
from invocations.queue.retries import requeue_call
from invocations.replays import services
from invocations.replays.reconstruction import choose_verdict, reconstruct_call
from invocations.run import execution
from invocations.run_profiles.models import RunProfile
from tests.support.calls import row_of, writer
from tests.support.replays import WHY, work_through
from tests.support.writes_between_reads import after_each_read

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"


@pytest.fixture
def invoked(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, operator: Person
) -> Invocation:
    enable()
    grant()
    set_budget(scope="tenant", dimension="calls", amount=100, reason="for a test", window_s=3600, by=operator.by)
    return row_of(caller.invoke(ECHO, {"text": "x"}))


def wrong_in(call: Invocation, **changes: Any) -> set[str]:
    """The row as somebody would have changed it who can write to the database."""
    found = Invocation.objects.select_related("version").get(pk=call.pk)
    for name, value in changes.items():
        setattr(found, name, value)
    return {each.field for each in reconstruct_call(found, opened=True) if each.verdict == "differs"}


@pytest.mark.req("TOOLS-28", "SPEC-7")
def test_a_call_that_nobody_touched_is_what_its_facts_say(invoked: Invocation) -> None:
    findings = {each.field: each.verdict for each in reconstruct_call(invoked, opened=True)}

    assert set(findings.values()) == {"equal"}, findings
    assert {"policy", "profile", "build", "budget", "consent", "input_value", "output_value", "decision"} <= set(
        findings
    )


CHANGES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "the tool": ({"tool": "sample.tools.other"}, {"tool"}),
    "its time": ({"created_at": datetime(2026, 1, 1, tzinfo=UTC)}, {"created_at"}),
    "its end": ({"state": "failed", "reason": "TOOL.EXECUTION_FAILED"}, {"state", "reason"}),
    "the policy": ({"policy_version": "builtin@1", "policy_hash": "sha256:" + "0" * 64}, {"policy", "policy_hash"}),
    "the profile": ({"profile_hash": "sha256:" + "0" * 64}, {"profile", "profile_document", "level"}),
    "what was asked": ({"request_id": "another"}, {"request_id"}),
    "what it rests on": ({"sources": []}, {"sources"}),
    "its result": ({"output_digest": "sha256:" + "0" * 64}, {"output_digest"}),
    "a dry run": ({"dry_run": True}, {"dry_run"}),
    "budgets": ({"budget": []}, {"budget"}),
    "how often it ran": ({"attempt": 7}, {"attempt"}),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.req("TOOLS-28", "SPEC-7")
def test_a_change_of_the_stored_call_is_named(invoked: Invocation, change: str) -> None:
    fields, seen = CHANGES[change]

    assert wrong_in(invoked, **fields) == seen


@pytest.mark.parametrize(
    ("document", "seen"), [({}, {"profile_document", "level"}), (None, {"profile_document", "level"})]
)
@pytest.mark.req("TOOLS-28", "SPEC-7")
def test_a_change_of_the_profile_that_calls_share_is_named(
    invoked: Invocation, document: dict[str, Any] | None, seen: set[str]
) -> None:
    kept = RunProfile.objects.filter(tenant_id=invoked.tenant_id, digest=invoked.profile_hash)
    assert kept.delete()[0] if document is None else kept.update(document=document)

    assert wrong_in(invoked) == seen


@pytest.mark.req("TOOLS-28")
def test_stored_values_and_runs_that_were_exchanged_are_named(invoked: Invocation, caller: Caller) -> None:
    other = row_of(caller.invoke(ECHO, {"text": "y"}))
    theirs = Snapshot.objects.get(invocation_id=other.pk, kind="output")
    mine = Snapshot.objects.filter(invocation_id=invoked.pk, kind="output")
    mine.update(**{name: getattr(theirs, name) for name in ("commitment", "ciphertext", "wrapped_key", "nonce")})
    Attempt.objects.filter(invocation=invoked).update(image="sha256:other")

    assert wrong_in(invoked) == {"output", "output_value", "image"}


@pytest.mark.req("TOOLS-28")
def test_what_is_not_kept_is_told_from_what_differs(invoked: Invocation) -> None:
    Snapshot.objects.filter(invocation_id=invoked.pk).delete()

    findings = reconstruct_call(invoked, opened=True)

    assert {each.field for each in findings if each.verdict == "not_kept"} == {"input", "output"}
    assert choose_verdict(findings) == "equal"


@pytest.mark.req("TOOLS-28")
def test_calls_that_were_refused_or_waited_for_a_person_are_rebuilt_too(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, operator: Person
) -> None:
    writer(enable)
    grant()
    refused = row_of(caller.invoke("sample.tools.write", {"text": "x"}))
    held = row_of(caller.invoke("sample.tools.write", {"text": "x"}, on_consent="hold", purpose="for a test"))

    assert refused.state == "denied"
    assert held.state == "held"
    assert wrong_in(refused) == set()
    assert wrong_in(held) == set()


# While it is gone through.


def end_it() -> None:
    execution.run_queued_calls()


def cut_it_off() -> None:
    invocation = claim_call()
    assert invocation is None or requeue_call(invocation, because="SANDBOX.LOST")


def by_rest(call: Invocation, auditor: Person, between: Any) -> dict[str, Any]:
    client = auditor.client()
    with between:
        data = client.get(f"/api/v1/invocations/{call.wire_id}/reconstruction").json()["data"]
    return {each["field"]: each for each in data["findings"] if each["verdict"] == "differs"}


def by_one_replay(call: Invocation, auditor: Person, between: Any) -> dict[str, Any]:
    row = services.replay_call(invocation_id=call.pk, reason=WHY, by=auditor.by)
    with between:
        work_through()
    row.refresh_from_db()
    return {each["field"]: each for each in row.result["findings"] if each["verdict"] == "differs"}


def by_a_period(call: Invocation, auditor: Person, between: Any) -> dict[str, Any]:
    period: dict[str, Any] = {
        "since": call.created_at - timedelta(minutes=1),
        "until": call.created_at + timedelta(minutes=1),
    }
    row = services.replay_period(what="facts", reason=WHY, by=auditor.by, **period)
    with between:
        work_through()
    row.refresh_from_db()
    assert sum(row.result["counts"].values()) == 1
    found: dict[str, Any] = row.result.get("fields", {})
    return found


@pytest.mark.parametrize("look", [by_rest, by_one_replay, by_a_period])
@pytest.mark.parametrize("do", [end_it, cut_it_off])
@pytest.mark.django_db(transaction=True)
@pytest.mark.req("TOOLS-28", "TOOLS-18")
def test_a_call_that_ends_or_is_cut_off_between_two_reads_of_a_look_is_what_its_facts_say(
    look: Callable[..., dict[str, Any]], do: Callable[[], None], caller: Caller, enable: Callable[..., Tool],
    grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox, auditor: Person,
) -> None:  # fmt: skip
    enable(idempotency="keyed")
    grant()
    bell.answers = False
    call = row_of(caller.invoke(ECHO, {"text": "x"}, headers={"Prefer": "respond-async"}))

    assert look(call, auditor, after_each_read(do, most=1, of="invocations_invocation")) == {}

    assert Attempt.objects.filter(invocation=call).count() == 1, "it happened"
    assert look(call, auditor, nullcontext()) == {}
