"""Erasure: is a person forgotten wherever values of theirs were, and does the proof stay whole?"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from access.consents import services as consents
from access.models import Consent
from access.roles import Role
from evidence import retention
from evidence import services as evidence
from evidence.erasures import services as erasures
from evidence.keys.subject_keys import choose_key_subject, get_subject_key
from evidence.models import Erasure, Fact, Snapshot, SnapshotKind, SubjectKey
from evidence.problems import ErasureNotConfirmed, RevealReasonTooShort, ValuesErased
from invocations.artifacts.models import Artifact, ArtifactContent
from invocations.callbacks import delivery, services
from invocations.chains.models import Chain
from invocations.kept_callers import NOBODY
from invocations.models import Invocation, State, StoredFile
from invocations.sandbox.base import LeftArtifact, RunEvent, RunOutcome, RunStatus, TenantFile
from kernel.ids import new_id
from kernel.problems import Conflict, SchemaInvalid
from tests.conftest import make_person
from tests.support.calls import assert_problem, kinds_of, row_of, writer
from tests.support.chains import TEXT, chain_of, of, step
from tests.support.chains import submit as submit_plan
from tests.support.erasures import REASON, cells, dump, forget, opened, wrapped_keys
from tests.support.http_server import local_server
from tests.support.sealed_values import seal_as_before

if TYPE_CHECKING:
    from collections.abc import Callable

    from access.models import Tenant
    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
WRITE = "sample.tools.write"
ANN, BEA = "user-ann-4711", "user-bea-0815"
SECRET = "zq-Ann-Lindqvist-7f3b"
OTHER = "zq-Bea-Okonkwo-91aa"
FS = {"fs": [{"path": "/data", "actions": ["read", "write", "create"]}]}


@pytest.fixture
def owner(tenant: Tenant) -> Person:
    return make_person(tenant, "oona", Role.OWNER)


@pytest.fixture
def ready(
    caller: Caller,
    operator: Person,
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
) -> None:
    writer(enable, capabilities=FS, limits={"files": 5, "artifacts": 5}, output_schema=TEXT)
    grant()
    sandbox.missing = lambda profile, *, by_gate=False: ()  # type: ignore[method-assign]
    consent = consents.request_consent(tool=WRITE, versions="^1", purpose="a test", validity_s=600, by=caller.by)
    consents.approve_consent(consent_id=consent.pk, reason="for a test", by=operator.by)


def for_ann(caller: Caller, text: str = SECRET, *, user: str = ANN, **more: Any) -> Any:
    return caller.invoke(WRITE, {"text": text}, user_id=user, **more)


def for_bea(caller: Caller, **more: Any) -> Any:
    return for_ann(caller, OTHER, user=BEA, **more)


def values_of(word: str, suffix: str) -> RunOutcome:
    """A run that says a word in every way that there is."""
    return RunOutcome(
        RunStatus.OK,
        value={"text": f"{word} came back", "post_execution_plan": {"steps": []}},
        report={"sources": [{"type": "record", "name": f"{word} at home", "version": "1"}]},
        stdout=f"{word} printed",
        stderr=f"{word} complained",
        artifacts=(LeftArtifact(f"{word}.txt", "text/plain", f"{word} in an artifact".encode()),),
        files=(TenantFile(f"/data/{suffix}.txt", f"{word} in a file".encode()),),
    )


@pytest.fixture
def everywhere(
    ready: None, caller: Caller, bell: Bell, sandbox: ScriptedSandbox, operator: Person, settings: Any
) -> Any:
    """Values of Ann and of Bea in every place that keeps some."""
    settings.TOOLHUB_SEGMENT_S = 0
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with local_server() as server:
        endpoint = services.make_endpoint(
            agent_id=caller.agent.pk,
            name="orders",
            url=f"{server.url}/hook",
            include_answer=True,
            by=operator.by,
        )
        for word, user, key in ((SECRET, ANN, "ann"), (OTHER, BEA, "bea")):

            def speak(word: str = word) -> None:
                sandbox.tell(RunEvent("stdout", f"{word} on the way\n"))
                sandbox.tell(RunEvent("progress", progress={"fraction": 0.5, "message": f"{word} half"}))
                sandbox.tell(RunEvent("progress", progress={"log": f"{word} told"}))

            sandbox.during, sandbox.outcome = speak, values_of(word, key)
            named = {"request_id": f"{word}-call", "session_id": f"{word}-s"}
            for_ann(caller, word, user=user, idempotency_key=f"key-{key}", callback="orders", **named)
            sandbox.during = lambda: None
            sandbox.outcome = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message=f"{word} was wrong")
            for_ann(caller, f"{word} fails", user=user)
            sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": f"{word}+"}, report={})
            for_ann(caller, f"{word} too", user=user, idempotency_key=f"again-{key}")
            for_ann(caller, f"{word} too", user=user, idempotency_key=f"again-{key}")
            caller.invoke(WRITE, {"txt": f"{word} misnamed"}, user_id=user)
            chain = chain_of(
                submit_plan(
                    caller,
                    step("first", "write", text=f"{word} one"),
                    step("second", "write", text=of("first")),
                    user_id=user,
                    request_id=f"{word}-chain",
                )
            )
            bell.deliver()
            chain.refresh_from_db()
            assert chain.is_final
        delivery.send_due_deliveries()
    return endpoint


@pytest.mark.req("SPEC-10", "TOOLS-21")
def test_after_an_erasure_no_copy_of_the_persons_values_is_readable_anywhere(
    everywhere: Any, caller: Caller, owner: Person
) -> None:
    assert opened().count(SECRET) > 10
    assert opened().count(OTHER) > 10
    others = opened().count(OTHER)
    leaves = {fact.pk: bytes(fact.leaf_hash) for fact in Fact.objects.all()}
    keys = wrapped_keys()

    done = forget(ANN, by=owner.by)

    assert done.state == "done"
    assert done.subject == ""
    assert set(done.counts) >= {"calls", "chains", "values", "artifacts", "files"}
    assert SECRET not in opened()
    assert not [cell for cell in cells() if SECRET in cell or ANN in cell]
    text = dump()
    assert SECRET not in text
    gone = [key for key in keys if key not in wrapped_keys()]
    assert len(gone) == 1
    assert gone[0].hex() not in text
    if connection.vendor == "postgresql":  # a dump has no bytes of rows that are gone; for SQLite see below
        assert gone[0].decode("latin-1") not in text
    assert opened().count(OTHER) == others  # nobody else loses anything
    for fact in Fact.objects.filter(pk__in=leaves):
        assert bytes(fact.leaf_hash) == leaves[fact.pk] == hashlib.sha256(b"\0" + bytes(fact.leaf)).digest()
    kinds = list(Fact.objects.filter(subject=done.wire_id).order_by("id").values_list("kind", flat=True))
    assert kinds == ["erasure.asked", "subject.erased", "words.erased", "erasure.finished"]


@pytest.mark.req("SPEC-10")
def test_calls_name_neither_the_program_nor_the_account_of_a_person_who_was_erased(
    everywhere: Any, owner: Person
) -> None:
    """Both are the person's own, and their rows say whose."""
    mark, program, account = erasures.subject_of_user(ANN, tenant_id=owner.by.tenant_id), new_id(), new_id()
    made = Invocation.objects.filter(user_fingerprint=mark)
    of_ann = list(made.values_list("pk", flat=True))
    made.update(connection_id=program, account_id=account)
    credential = NOBODY | {"connection": [program.hex, "a-client", "usr_of_ann"]}
    chains = list(Chain.objects.filter(user_fingerprint=mark).values_list("pk", flat=True))
    Chain.objects.filter(pk__in=chains).update(credential=credential)

    forget(ANN, by=owner.by)

    calls = Invocation.objects.filter(pk__in=of_ann)
    assert set(calls.values_list("connection_id", "account_id")) == {(None, None)}
    assert [each.credential for each in Chain.objects.filter(pk__in=chains)] == [NOBODY]
    assert program.hex not in dump().replace("-", "")


@pytest.mark.req("SPEC-10")
def test_the_hash_of_the_person_goes_too_once_their_idempotency_keys_are_free(everywhere: Any, owner: Person) -> None:
    mark = erasures.subject_of_user(ANN, tenant_id=owner.by.tenant_id)
    forget(ANN, by=owner.by)
    kept = Invocation.objects.filter(user_fingerprint=mark)
    assert {call.idempotency_key for call in kept if call.chain_step is None} == {"key-ann", "again-ann"}

    Invocation.objects.filter(key_until__isnull=False).update(key_until=timezone.now() - timedelta(seconds=1))
    retention.apply_due_retention()

    assert not [cell for cell in cells() if mark in cell]


@pytest.mark.req("SPEC-10", "SPEC-7")
def test_a_call_that_is_sent_again_is_told_that_its_answer_was_erased_and_does_not_run(
    everywhere: Any, caller: Caller, owner: Person, sandbox: ScriptedSandbox
) -> None:
    forget(ANN, by=owner.by)
    ran = len(sandbox.calls)

    answer = for_ann(caller, f"{SECRET} too", idempotency_key="again-ann")

    assert_problem(answer, 410, "ANSWER.ERASED")
    assert len(sandbox.calls) == ran
    assert_problem(caller.get(f"/invocations/{row_of(answer).wire_id}"), 410, "ANSWER.ERASED")


@pytest.mark.req("SPEC-10")
def test_the_timeline_of_a_call_says_when_its_values_were_erased(
    ready: None, caller: Caller, owner: Person, auditor: Person
) -> None:
    call = row_of(for_ann(caller))
    page = auditor.client().get(f"/invocations/{call.wire_id}").content.decode()
    assert "Values erased" not in page

    forget(ANN, by=owner.by)

    page = auditor.client().get(f"/invocations/{call.wire_id}").content.decode()
    assert "Values erased" in page
    assert kinds_of(call) == ["invocation.began", "invocation.ended"]


@pytest.mark.req("SPEC-10")
def test_a_run_that_goes_on_through_the_erasure_leaves_nothing(
    ready: None, caller: Caller, owner: Person, sandbox: ScriptedSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has read the key before, so the database has to refuse it."""
    monkeypatch.setattr(erasures, "PATIENCE", timedelta(0))
    sandbox.outcome = values_of(SECRET, ANN)

    def erase() -> None:
        assert forget(ANN, by=owner.by).state == "done"

    sandbox.during = erase
    answer = for_ann(caller)

    assert_problem(answer, 410, "ANSWER.ERASED")
    call = row_of(answer)
    assert call.state == State.SUCCEEDED
    assert call.output_digest == ""
    assert kinds_of(call)[-1] == "invocation.ended"
    assert not Snapshot.objects.filter(invocation_id=call.pk).exists()
    assert not Artifact.objects.exists()
    assert not ArtifactContent.objects.exists()
    assert not StoredFile.objects.exists()
    assert not [cell for cell in cells() if SECRET in cell]


@pytest.mark.req("SPEC-10")
def test_calls_that_wait_are_ended_before_their_person_is_forgotten(
    ready: None, caller: Caller, owner: Person, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    bell.answers = False
    waits = row_of(for_ann(caller, headers={"Prefer": "respond-async"}))
    others = row_of(for_bea(caller, headers={"Prefer": "respond-async"}))

    forget(ANN, by=owner.by)

    waits.refresh_from_db()
    others.refresh_from_db()
    assert (waits.state, others.state) == (State.CANCELLED, State.QUEUED)
    bell.deliver()
    assert len(sandbox.calls) == 1


@pytest.mark.req("SPEC-10")
def test_whoever_comes_back_is_somebody_new(ready: None, caller: Caller, owner: Person) -> None:
    for_ann(caller)
    forget(ANN, by=owner.by)

    answer = for_ann(caller, "welcome back")

    assert answer.status_code == 200
    row = Snapshot.objects.get(invocation_id=row_of(answer).pk, kind="input")
    assert evidence.open_values(row)["arguments"] == {"text": "welcome back"}
    assert erasures.advance_erasure(Erasure.objects.get().pk) is False
    assert Snapshot.objects.filter(pk=row.pk).exists()


@pytest.mark.req("SPEC-10")
def test_an_erasure_that_was_interrupted_goes_on_and_nothing_can_be_read_from_its_first_step(
    everywhere: Any, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasures, "BATCH", 2)

    begun = forget(ANN, by=owner.by, steps=1)
    assert begun.state == "erasing"
    assert begun.erased_at is not None
    assert SECRET not in opened()
    assert Snapshot.objects.filter(subject_key=begun.key).count() > 10
    assert erasures.advance_erasure(begun.pk) is True

    erasures.advance_erasures()

    begun.refresh_from_db()
    assert begun.state == "done"
    assert not Snapshot.objects.filter(subject_key=begun.key).exists()


@pytest.mark.req("SPEC-10")
def test_what_older_hubs_have_sealed_stays_readable_and_can_be_erased(
    ready: None, caller: Caller, owner: Person
) -> None:
    call = row_of(for_ann(caller))
    Snapshot.objects.filter(invocation_id=call.pk).delete()
    Invocation.objects.filter(pk=call.pk).update(values_key=None)
    SubjectKey.objects.filter(subject=call.user_fingerprint).update(
        subject="", wrapped_key=b"", destroyed_at=timezone.now()
    )
    old = seal_as_before(call.tenant_id, {"text": SECRET}, invocation_id=call.pk, kind=SnapshotKind.OUTPUT)
    assert evidence.open_values(old) == {"text": SECRET}

    done = forget(ANN, by=owner.by)

    assert not Snapshot.objects.filter(pk=old.pk).exists()
    call.refresh_from_db()
    assert call.values_key == done.key


@pytest.mark.req("SPEC-10")
def test_the_database_refuses_a_value_under_a_key_that_is_destroyed(caller: Caller, owner: Person) -> None:
    subject = erasures.subject_of_user(ANN, tenant_id=owner.by.tenant_id)
    with transaction.atomic():
        key = get_subject_key(tenant_id=owner.by.tenant_id, subject=subject)
    forget(ANN, by=owner.by)

    with pytest.raises(IntegrityError, match="not in use"), transaction.atomic():
        evidence.seal_values(
            tenant_id=key.tenant_id, invocation_id=new_id(), kind=SnapshotKind.INPUT, value=SECRET, key=key
        )
    key.refresh_from_db()
    with pytest.raises(ValuesErased):
        evidence.open_values(Snapshot(tenant_id=key.tenant_id, invocation_id=new_id(), kind="input", subject_key=key))
    unkept = evidence.seal_values(
        tenant_id=key.tenant_id, invocation_id=new_id(), kind=SnapshotKind.INPUT, value=SECRET, key=key
    )
    assert not Snapshot.objects.filter(pk=unkept.pk).exists()


@pytest.mark.req("SPEC-10")
def test_consents_of_the_person_end_and_name_nobody(
    caller: Caller, enable: Callable[..., Tool], grant: Callable[..., Any], owner: Person, operator: Person, bell: Bell
) -> None:
    writer(enable)
    grant()
    held = for_ann(caller, on_consent="hold", purpose=f"for {SECRET}")
    assert held.status_code == 202, held.json()

    forget(ANN, by=owner.by)

    consent = Consent.objects.get()
    assert (consent.state, consent.user_fingerprint, consent.purpose) == ("expired", "", "(erased)")
    assert row_of(held).state in (State.CANCELLED, State.EXPIRED)


# Asking for it.


@pytest.mark.req("SPEC-10")
def test_nobody_erases_what_they_have_not_looked_at(
    ready: None, caller: Caller, owner: Person, stranger: Person
) -> None:
    for_ann(caller)
    found, confirm = erasures.preview_erasure(user_id=ANN, by=owner.by)
    _, of_bea = erasures.preview_erasure(user_id=BEA, by=owner.by)

    assert (found["calls"], found["values"]) == (1, 2)
    for word, by in (("", owner.by), (of_bea, owner.by), (confirm, stranger.by), (f"{confirm}x", owner.by)):
        with pytest.raises(ErasureNotConfirmed):
            erasures.erase_subject(user_id=ANN, reason=REASON, confirm=word, by=by)
    with pytest.raises(RevealReasonTooShort):
        erasures.erase_subject(user_id=ANN, reason="gone", confirm=confirm, by=owner.by)
    with pytest.raises(SchemaInvalid):
        erasures.preview_erasure(user_id="", by=owner.by)
    erasures.erase_subject(user_id=ANN, reason=REASON, confirm=confirm, by=owner.by)
    with pytest.raises(Conflict):
        erasures.erase_subject(user_id=ANN, reason=REASON, confirm=confirm, by=owner.by)


@pytest.mark.req("TOOLS-22", "SPEC-10")
def test_the_same_person_of_another_tenant_is_somebody_else(ready: None, caller: Caller, stranger: Person) -> None:
    for_ann(caller)

    done = forget(ANN, by=replace(stranger.by))

    assert done.counts == {}
    assert SECRET in opened()


def test_calls_for_nobody_have_a_key_of_their_agents_month(ready: None, caller: Caller) -> None:
    call = row_of(caller.invoke(WRITE, {"text": "x"}))

    assert call.values_key is not None
    assert call.values_key.subject == choose_key_subject("", agent_id=call.agent_id, at=call.created_at)
    assert call.values_key.subject.startswith("agt_")
