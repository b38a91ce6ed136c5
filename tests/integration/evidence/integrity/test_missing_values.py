"""Missing values: is a stored value that somebody took away past the hub found, and what went by an erasure or by retention not?"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from access.consents import services as consents
from access.models import Consent
from access.roles import Role
from evidence import services as evidence
from evidence.erasures import services as erasures
from evidence.integrity import commitments
from evidence.integrity.alarms import list_alarms
from evidence.integrity.verifier import advance_next, begin_passes, verify_whole
from evidence.kinds import Kind
from evidence.leaves.custody import AppliedRetention, AskedErasure, FinishedErasure
from evidence.models import Fact, Log, Retention, Snapshot, SnapshotKind, Verification, read_leaf
from evidence.retention import apply_retention
from kernel.ids import lowest_id
from kernel.principal import Principal
from tests.conftest import make_person
from tests.support.calls import row_of
from tests.support.erasures import forget
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.raw_database import sql, take_down_triggers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Tenant
    from invocations.models import Invocation
    from registry.models import Tool
    from tests.conftest import Caller
    from tests.support.calls import Bell

ANN = "user-ann-4711"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.fixture
def calls(enable: Callable[..., Tool], grant: Callable[..., Any], caller: Caller, bell: Bell) -> list[Invocation]:
    enable()
    grant()
    return [row_of(caller.invoke("sample.tools.echo", {"text": f"x{n}"})) for n in range(4)]


def found_in(calls: list[Invocation]) -> list[tuple[str, str]]:
    seal_everything()
    found = list(verify_whole(Log.objects.get(pk=calls[0].tenant_id)))
    return [(str(each.code), each.detail) for each in found]


@pytest.mark.req("TOOLS-18")
def test_values_that_were_deleted_past_the_hub_are_found_and_counted(calls: list[Invocation], capsys: Any) -> None:
    assert found_in(calls) == []
    rows = Snapshot.objects.filter(tenant_id=calls[0].tenant_id)
    gone = {row.wire_id for row in rows}
    assert len(gone) >= 8
    rows.delete()

    found = found_in(calls)

    assert {code for code, _ in found} == {"commitment.missing"}
    assert {detail for _, detail in found} == gone
    with pytest.raises(SystemExit):
        call_command("verify_log")
    assert f"{len(gone)} findings" in capsys.readouterr().out
    begin_passes()
    while advance_next():
        pass
    assert Verification.objects.get(tenant_id=calls[0].tenant_id).found == len(gone)
    assert [each.kind for each in list_alarms(calls[0].tenant_id)] == ["damaged"]


@pytest.mark.req("TOOLS-18")
def test_what_retention_took_is_no_finding_and_what_it_did_not_take_is(calls: list[Invocation]) -> None:
    retention = Retention.objects.create(tenant_id=calls[0].tenant_id, name="outputs", days=0)
    assert apply_retention(retention=retention) == len(calls)
    assert found_in(calls) == []
    gone = Snapshot.objects.filter(invocation_id=calls[0].pk, kind="input")
    [wire_id] = [row.wire_id for row in gone]
    gone.delete()

    assert found_in(calls) == [("commitment.missing", wire_id)]


@pytest.mark.req("TOOLS-18")
def test_what_an_erasure_took_is_no_finding_and_what_is_another_person_s_is(
    calls: list[Invocation], caller: Caller, tenant: Tenant
) -> None:
    owner = make_person(tenant, "oona", Role.OWNER)
    theirs = [row_of(caller.invoke("sample.tools.echo", {"text": "y"}, user_id=ANN)) for _ in range(2)]
    assert forget(ANN, by=owner.by).state == "done"
    assert not Snapshot.objects.filter(invocation_id__in=[call.pk for call in theirs]).exists()
    assert found_in(calls) == []
    Snapshot.objects.filter(invocation_id=calls[1].pk, kind="output").delete()

    assert [code for code, _ in found_in(calls)] == ["commitment.missing"]


@pytest.mark.req("TOOLS-18")
def test_a_consent_that_ends_with_its_person_is_no_finding(
    calls: list[Invocation], caller: Caller, tenant: Tenant
) -> None:
    owner = make_person(tenant, "oona", Role.OWNER)
    subject = erasures.subject_of_user(ANN, tenant_id=tenant.pk)
    consents.request_consent(
        tool="sample.tools.write",
        versions="^1",
        purpose="place orders",
        validity_s=600,
        user_fingerprint=subject,
        by=caller.by,
    )
    assert forget(ANN, by=owner.by).state == "done"

    ended = Fact.objects.get(kind=Kind.CONSENT_EXPIRED)
    assert (ended.reason, Consent.objects.get().state) == ("CONSENT.SUBJECT_ERASED", "expired")
    assert "words" not in ended.content.get("data", {})
    assert found_in(calls) == []


def texts_of_facts(tenant: Tenant, *texts: str) -> list[Snapshot]:
    facts = [write_facts(tenant.pk, 1, reason=text)[0] for text in texts]
    return [Snapshot.objects.get(invocation_id=fact.pk, kind=SnapshotKind.WORDS) for fact in facts]


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("steps", [1, None], ids=["while it goes on", "when it is done"])
def test_of_words_only_those_that_an_erasure_has_named_may_be_gone(
    steps: int | None, calls: list[Invocation], tenant: Tenant
) -> None:
    owner = make_person(tenant, "oona", Role.OWNER)
    about_ann, other, another = texts_of_facts(tenant, f"for {ANN}", "for somebody else", "and somebody else")
    asked = forget(ANN, by=owner.by, steps=steps)
    assert asked.state == ("erasing" if steps else "done")
    assert not Snapshot.objects.filter(pk=about_ann.pk).exists()
    [told] = Fact.objects.filter(kind=Kind.WORDS_ERASED)
    assert (told.subject, told.content["data"]) == (asked.wire_id, {"count": 1, "snapshots": [about_ann.wire_id]})
    assert found_in(calls) == []

    Snapshot.objects.filter(pk__in=[other.pk, another.pk]).delete()

    assert found_in(calls) == [("commitment.missing", each.wire_id) for each in (other, another)]


@pytest.mark.req("TOOLS-18")
def test_words_of_what_belongs_to_the_person_are_named_as_well(
    calls: list[Invocation], caller: Caller, tenant: Tenant
) -> None:
    owner = make_person(tenant, "oona", Role.OWNER)
    subject = erasures.subject_of_user(ANN, tenant_id=tenant.pk)
    asked: dict[str, Any] = {"versions": "^1", "validity_s": 600, "user_fingerprint": subject, "by": caller.by}
    for tool in ("write", "other"):
        consents.request_consent(tool=f"sample.tools.{tool}", purpose="to order", **asked)
    texts = {row.wire_id for row in Snapshot.objects.filter(kind=SnapshotKind.WORDS, tenant_id=tenant.pk)}
    [kept] = texts_of_facts(tenant, "for somebody else")

    assert forget(ANN, by=owner.by).state == "done"

    left = {row.wire_id for row in Snapshot.objects.filter(kind=SnapshotKind.WORDS, tenant_id=tenant.pk)}
    named = {id for fact in Fact.objects.filter(kind=Kind.WORDS_ERASED) for id in fact.content["data"]["snapshots"]}
    assert named == texts - left
    assert len(named) == 2
    assert kept.wire_id in left
    assert found_in(calls) == []


@pytest.mark.req("TOOLS-18")
def test_very_many_words_are_named_in_several_facts(
    calls: list[Invocation], tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "WORDS_IN_A_FACT", 2)
    owner = make_person(tenant, "oona", Role.OWNER)
    texts_of_facts(tenant, *[f"{n} for {ANN}" for n in range(5)])

    assert forget(ANN, by=owner.by).state == "done"

    assert [fact.content["data"]["count"] for fact in Fact.objects.filter(kind=Kind.WORDS_ERASED).order_by("pk")] == [
        2,
        2,
        1,
    ]
    assert found_in(calls) == []


@pytest.mark.req("TOOLS-18")
def test_an_erasure_of_a_hub_before_that_named_no_words_excuses_what_was_written_until_it_was_finished(
    calls: list[Invocation], tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commitments, "SLACK", timedelta(0))
    by = Principal.system("erasure", tenant_id=tenant.pk)
    [before] = texts_of_facts(tenant, "before it was asked for")
    evidence.record(kind=Kind.ERASURE_ASKED, subject="era_x", actor=by, data=AskedErasure(concerns={}))
    [during] = texts_of_facts(tenant, "while the keeper was at it")
    Snapshot.objects.filter(pk__in=[before.pk, during.pk]).delete()
    assert found_in(calls) == []
    evidence.record(
        kind=Kind.ERASURE_FINISHED, subject="era_x", actor=by, outcome="succeeded", data=FinishedErasure(removed={})
    )
    assert found_in(calls) == []
    [after] = texts_of_facts(tenant, "when it was done")
    Snapshot.objects.filter(pk=after.pk).delete()

    assert found_in(calls) == [("commitment.missing", after.wire_id)]


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    "said",
    [
        {"class": "outputs"},
        {"class": ["outputs"], "until": "2026-01-01T00:00:00+00:00"},
        {"class": "outputs", "until": "never"},
        {"class": "outputs", "until": 7},
        {"class": "outputs", "until": "2026-01-01T00:00:00"},
        {"class": "outputs", "until": "0001-01-01T00:00:00+14:00"},
    ],
    ids=["no time", "a list", "no date", "a number", "no zone", "before all time"],
)
def test_a_fact_of_retention_that_cannot_be_read_hides_nothing(
    said: dict[str, Any], calls: list[Invocation], tenant: Tenant
) -> None:
    take_down_triggers()
    [fact] = write_facts(tenant.pk, 1)
    seal_everything()
    leaf = json.dumps(fact.content | {"kind": "retention.applied", "data": said}).encode()
    sql("UPDATE evidence_fact SET kind = 'retention.applied', leaf = %s WHERE id = %s", leaf, fact.pk)
    Snapshot.objects.filter(invocation_id=calls[0].pk, kind="output").delete()

    assert "commitment.missing" in {code for code, _ in found_in(calls)}


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize(
    "said",
    [{"id": 7}, {"id": None}, {"id": []}, {"at": 7}, {"subject": None}, {"data": []}, {"data": None}, {"kind": []}],
    ids=str,
)
def test_a_fact_of_forgetting_whose_fields_have_other_types_does_not_stop_the_verifier(
    said: dict[str, Any], calls: list[Invocation], tenant: Tenant
) -> None:
    take_down_triggers()
    [fact] = write_facts(tenant.pk, 1)
    seal_everything()
    leaf = json.dumps(fact.content | {"kind": "erasure.finished"} | said).encode()
    sql("UPDATE evidence_fact SET kind = 'erasure.finished', leaf = %s WHERE id = %s", leaf, fact.pk)
    Snapshot.objects.filter(invocation_id=calls[0].pk, kind="output").delete()

    assert {"commitment.missing", "leaf.changed"} <= {code for code, _ in found_in(calls)}


@pytest.mark.req("TOOLS-18")
def test_of_facts_that_were_read_only_the_newest_are_read_again(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []

    def note(leaf: bytes) -> dict[str, Any]:
        read.append(leaf)
        return read_leaf(leaf)

    monkeypatch.setattr(commitments, "LATE", timedelta(0))
    monkeypatch.setattr(commitments, "read_leaf", note)
    by = Principal.system("retention", tenant_id=tenant.pk)
    for day in range(1, 9):
        monkeypatch.setattr(evidence, "new_id", partial(lowest_id, datetime(2026, 1, day, tzinfo=UTC)))
        said = AppliedRetention(class_="outputs", count=1, until=f"2026-01-0{day}T00:00:00+00:00")
        evidence.record(kind=Kind.RETENTION_APPLIED, subject="x", actor=by, data=said)
    first, count = commitments._forgotten(tenant.pk).until[SnapshotKind.OUTPUT], len(read)
    again = commitments._forgotten(tenant.pk).until[SnapshotKind.OUTPUT]

    assert (first, count, len(read)) == (again, 8, 9)
