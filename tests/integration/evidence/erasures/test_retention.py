"""Retention: does what is old go, class by class, and does a call whose answer went stay answered?"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access.roles import Role
from evidence import retention
from evidence.erasures.holders import CLASSES
from evidence.models import Fact, Retention, Snapshot
from invocations.artifacts.models import Artifact, ArtifactContent
from invocations.chains.models import Chain
from invocations.models import Invocation
from invocations.sandbox.base import LeftArtifact, RunOutcome, RunStatus
from kernel.ids import new_id
from kernel.problems import SchemaInvalid
from tests.conftest import make_person
from tests.support.calls import assert_problem, row_of
from tests.support.chains import chain_of, step, submit

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "oona", Role.OWNER)


@pytest.fixture
def made(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox
) -> Invocation:
    enable(side_effect="None", limits={"artifacts": 5})
    grant()
    sandbox.outcome = RunOutcome(
        RunStatus.OK, value={"text": "x"}, stdout="said", artifacts=(LeftArtifact("a.txt", "text/plain", b"left"),)
    )
    return row_of(caller.invoke(ECHO, {"text": "x"}, idempotency_key="k"))


def age(days: int) -> None:
    at = timezone.now() - timedelta(days=days)
    Invocation.objects.update(created_at=at, finished_at=at)
    Snapshot.objects.update(created_at=at)
    Artifact.objects.update(created_at=at)


def kinds(call: Invocation) -> set[str]:
    return set(Snapshot.objects.filter(invocation_id=call.pk).values_list("kind", flat=True))


@pytest.mark.req("SPEC-10")
def test_only_what_is_older_than_its_class_may_become_goes_and_each_removal_is_a_fact(
    made: Invocation, owner: Person
) -> None:
    retention.set_retention(days={"logs": 7, "outputs": 30}, by=owner.by)
    age(8)
    facts = Fact.objects.count()

    retention.apply_due_retention()
    retention.apply_due_retention()

    assert kinds(made) == {"input", "output"}
    fact = Fact.objects.get(kind="retention.applied")
    said = json.loads(bytes(fact.leaf))["data"]
    assert (said["class"], said["count"]) == ("logs", 1)
    assert Fact.objects.count() == facts + 1  # no fact was removed

    age(31)
    retention.apply_due_retention()
    assert kinds(made) == {"input"}


@pytest.mark.req("SPEC-9", "SPEC-10")
def test_a_call_whose_answer_is_too_old_is_answered_with_that_and_not_made_again(
    made: Invocation, caller: Caller, owner: Person, sandbox: ScriptedSandbox
) -> None:
    retention.set_retention(days={"outputs": 1}, by=owner.by)
    age(2)
    retention.apply_due_retention()

    assert_problem(caller.invoke(ECHO, {"text": "x"}, idempotency_key="k"), 410, "ANSWER.ERASED")
    assert len(sandbox.calls) == 1


@pytest.mark.req("SPEC-10")
def test_artifacts_go_with_their_content(made: Invocation, owner: Person) -> None:
    retention.set_retention(days={"artifacts": 1}, by=owner.by)
    age(2)

    retention.apply_due_retention()

    assert not Artifact.objects.exists()
    assert not ArtifactContent.objects.exists()


@pytest.mark.req("SPEC-10")
def test_a_call_that_goes_on_keeps_its_input_however_old_it_is(
    made: Invocation, caller: Caller, owner: Person, bell: Bell
) -> None:
    bell.answers = False
    waits = row_of(caller.invoke(ECHO, {"text": "y"}, headers={"Prefer": "respond-async"}))
    retention.set_retention(days=dict.fromkeys(CLASSES, 1), by=owner.by)
    Snapshot.objects.update(created_at=timezone.now() - timedelta(days=9))

    retention.apply_due_retention()

    assert kinds(waits) == {"input"}


@pytest.mark.req("SPEC-10")
@pytest.mark.parametrize("apart", [timedelta(), timedelta(days=1)], ids=["of one moment", "of two days"])
def test_what_goes_on_holds_up_nothing_that_has_ended(
    enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, tenant: Tenant, bell: Bell, apart: timedelta
) -> None:
    enable(side_effect="None")
    grant()
    bell.answers = False
    waiting = [row_of(caller.invoke(ECHO, {"text": "y"}, headers={"Prefer": "respond-async"})) for _ in range(3)]
    bell.answers = True
    ended = [row_of(caller.invoke(ECHO, {"text": "x"})) for _ in range(2)]
    now = timezone.now()
    Invocation.objects.filter(pk__in=[each.pk for each in ended]).update(finished_at=now - timedelta(days=5))
    for number, call in enumerate([*waiting, *ended]):
        Snapshot.objects.filter(invocation_id=call.pk).update(created_at=now - timedelta(days=9) + number * apart)

    inputs = CLASSES["inputs"]
    gone = [inputs.remove(tenant.pk, now - timedelta(days=2), 1) for _ in range(3)]

    assert gone == [1, 1, 0]
    assert all("input" in kinds(each) for each in waiting)
    assert not any("input" in kinds(each) for each in ended)


@pytest.mark.req("SPEC-10")
def test_the_time_counts_from_the_end_of_the_call(made: Invocation, tenant: Tenant) -> None:
    now = timezone.now()
    Snapshot.objects.update(created_at=now - timedelta(days=9))

    assert CLASSES["inputs"].remove(tenant.pk, now - timedelta(days=2), 10) == 0


@pytest.mark.req("SPEC-10")
def test_a_plan_goes_when_its_chain_has_ended(
    caller: Caller, chainable: None, scripted: dict[str, Any], bell: Bell, tenant: Tenant
) -> None:
    ended = chain_of(submit(caller, step("first")))
    bell.deliver()
    goes_on = chain_of(submit(caller, step("first")))
    before = timezone.now() - timedelta(days=2)
    Snapshot.objects.update(created_at=before - timedelta(days=9))
    Chain.objects.filter(pk=ended.pk).update(finished_at=before - timedelta(days=1))

    assert CLASSES["inputs"].remove(tenant.pk, before, 10) == 1
    assert Snapshot.objects.filter(invocation_id=goes_on.pk).exists()
    assert not Snapshot.objects.filter(invocation_id=ended.pk).exists()


@pytest.mark.req("SPEC-10")
def test_a_batch_is_no_larger_where_a_class_has_several_kinds(made: Invocation, tenant: Tenant) -> None:
    again = Snapshot.objects.get(invocation_id=made.pk, kind="output")
    again.pk, again.kind = new_id(), "replay"
    again.save(force_insert=True)
    age(9)

    gone = [CLASSES["outputs"].remove(tenant.pk, timezone.now() - timedelta(days=2), 1) for _ in range(3)]

    assert gone == [1, 1, 0]


@pytest.mark.req("SPEC-10", "TOOLS-22")
def test_another_tenant_keeps_its_own(made: Invocation, stranger: Person) -> None:
    retention.set_retention(days=dict.fromkeys(CLASSES, 1), by=replace(stranger.by))
    age(2)

    retention.apply_due_retention()

    assert kinds(made) == {"input", "output", "logs"}


@pytest.mark.req("SPEC-10")
def test_times_are_set_within_bounds_and_taken_back(owner: Person, caller: Caller) -> None:
    for wrong in ({"nothing": 3}, {"logs": 0}, {"logs": 10**6}):
        with pytest.raises(SchemaInvalid):
            retention.set_retention(days=wrong, by=owner.by)
    retention.set_retention(days={"logs": 3}, by=owner.by)
    assert retention.set_retention(days={"logs": None}, by=owner.by)["logs"] is None
    assert not Retention.objects.exists()
    assert Fact.objects.filter(kind="retention.set").count() == 2
    page = owner.client().post("/evidence/retention", {"keep_logs": "5", "keep_inputs": ""})
    assert page.status_code == 302
    assert retention.load_times(owner.by.tenant_id)["logs"] == 5
    assert owner.client().post("/evidence/retention", {"keep_logs": "0"}).status_code == 422
    assert "Nothing was changed yet" not in owner.client().get("/evidence/retention").content.decode()


@pytest.mark.req("SPEC-10")
@pytest.mark.unmapped
def test_a_class_that_cannot_be_removed_holds_up_no_other(
    made: Invocation, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> int:
        raise KeyError("nobody thought of this")

    retention.set_retention(days={"errors": 1, "inputs": 1}, by=owner.by)
    monkeypatch.setitem(CLASSES, "errors", replace(CLASSES["errors"], remove=broken))
    age(3)

    retention.apply_due_retention()

    assert "input" not in kinds(made)
