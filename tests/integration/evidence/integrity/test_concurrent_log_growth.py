"""Concurrent log growth: is nobody accused because something was written between two reads of the same look?

Each look here is watched: after each of its statements, another connection writes facts, seals them, and may rotate the log's key.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from evidence.integrity import verifier as integrity_verifier
from evidence.integrity.alarms import find_damaged, list_alarms
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.loop import Verifier
from evidence.integrity.rollback_detection import verify_and_keep
from evidence.integrity.services import ask_verification
from evidence.integrity.verifier import advance_next, begin_passes, note_findings, verify_whole
from evidence.kinds import Kind
from evidence.log import sealer
from evidence.models import GLOBAL_LOG, Fact, Log, Verification
from evidence.witnesses import anchors
from evidence.witnesses import client as witnesses_client
from evidence.witnesses.anchor_stores import append_to_file, read_last_from_file
from evidence.witnesses.client import WitnessAddress, ask_witness
from kernel.ids import new_id
from kernel.leases import renew_lease
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.writes_between_reads import after_each_read, elsewhere

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidence.log.signers.files import InMemorySigner
    from tests.conftest import Person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, settings: Any) -> Path:
    settings.TOOLHUB_KEPT_CHECKPOINT_FILE = tmp_path / "kept"
    return tmp_path / "kept"


def grow() -> None:
    write_facts(TENANT, 3)
    sealer.seal_pending()


TENANT = new_id()


@pytest.fixture
def log() -> Log:
    write_facts(TENANT, 40)
    sealer.seal_pending()
    return Log.objects.get(pk=TENANT)


@pytest.mark.req("TOOLS-18")
def test_a_seal_between_the_log_and_its_newest_checkpoint_is_no_rollback(log: Log, kept: Path) -> None:
    with after_each_read(grow) as asked:
        assert verify_and_keep() == []
        assert verify_and_keep() == []

    assert len(asked) > 3
    assert kept.read_text() != ""
    assert Log.objects.get(pk=GLOBAL_LOG).size > log.size - 39


@pytest.mark.req("TOOLS-18")
def test_a_newer_checkpoint_that_another_keeper_keeps_meanwhile_is_no_rollback(
    log: Log, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verify_and_keep()
    read = type(kept).read_text

    def read_later(path: Path, *rest: Any, **more: Any) -> str:
        if path == kept:
            elsewhere(grow_and_keep)
        return read(path, *rest, **more)

    def grow_and_keep() -> None:
        monkeypatch.setattr(type(kept), "read_text", read)
        grow()
        verify_and_keep()

    monkeypatch.setattr(type(kept), "read_text", read_later)

    assert verify_and_keep() == []


@pytest.mark.req("TOOLS-18")
def test_a_verification_that_reads_for_long_stays_its_keepers(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive may be slower than a lease is long."""
    begin_passes()
    Verification.objects.exclude(tenant_id=TENANT).delete()
    renewed, look, renew = threading.Event(), integrity_verifier._look, integrity_verifier._renew
    leases = list[Any]()

    def note_renewal(row: Verification) -> bool:
        kept = renew(row)
        renewed.set()
        return kept

    def note_lease() -> None:
        leases.append(Verification.objects.get(tenant_id=TENANT).lease_until)

    def renew_soon(renew: Callable[[], bool], *, every_s: float) -> Any:
        note_lease()
        return renew_lease(renew, every_s=every_s / 10_000)

    def look_slowly(row: Verification, *asked: Any) -> Any:
        assert renewed.wait(30)
        elsewhere(note_lease)
        return look(row, *asked)

    monkeypatch.setattr(integrity_verifier, "renew_lease", renew_soon)
    monkeypatch.setattr(integrity_verifier, "_renew", note_renewal)
    monkeypatch.setattr(integrity_verifier, "_look", look_slowly)
    advance_next()

    assert leases[0] < leases[1]
    assert Verification.objects.get(tenant_id=TENANT).position == log.size


@pytest.mark.req("TOOLS-18")
def test_what_is_sealed_while_a_log_is_verified_is_no_finding(log: Log) -> None:
    for tenant_id in (TENANT, GLOBAL_LOG):
        with after_each_read(grow):
            assert list(verify_whole(Log.objects.get(pk=tenant_id))) == []
    with after_each_read(grow):
        begin_passes()
        for _ in range(4):
            advance_next()

    assert Verification.objects.filter(state="running").count() == 3
    assert not Verification.objects.filter(found__gt=0).exists()


@pytest.mark.req("TOOLS-18")
def test_what_another_keeper_keeps_while_the_log_of_checkpoints_is_verified_is_no_rollback(log: Log) -> None:
    def grow_and_keep() -> None:
        grow()
        assert verify_and_keep() == []

    with after_each_read(grow_and_keep):
        assert list(verify_whole(Log.objects.get(pk=GLOBAL_LOG))) == []
    begin_passes()
    with after_each_read(grow_and_keep):
        while advance_next():
            pass

    assert not Verification.objects.filter(found__gt=0).exists()


@pytest.mark.req("TOOLS-18")
def test_a_key_that_is_added_while_the_keys_are_verified_is_no_finding(log: Log, keys: InMemorySigner) -> None:
    names = iter(range(100, 1000))

    def rotate() -> None:
        name = f"k{next(names)}"
        keys.seeds[name], keys.current = name.encode().ljust(32, b"."), name
        grow()

    before = dict(keys.seeds), keys.current
    try:
        with after_each_read(rotate, most=25):
            found = list(verify_whole(Log.objects.get(pk=GLOBAL_LOG)))
            found += list(verify_whole(Log.objects.get(pk=TENANT)))
    finally:
        keys.seeds, keys.current = before

    assert found == []


@pytest.mark.req("TOOLS-18")
def test_a_file_that_has_more_since_the_log_was_read_is_no_other_history(log: Log, tmp_path: Path) -> None:
    path = tmp_path / "anchored"

    def keep(note: str) -> None:
        append_to_file(path, note)

    def another_keeper() -> None:
        grow()
        anchors._keep(lambda: "", keep)

    anchors._keep(lambda: "", keep)
    with after_each_read(another_keeper, most=1):
        assert anchors._keep(lambda: read_last_from_file(path), keep) > 0


@pytest.mark.req("TOOLS-18")
def test_a_witness_that_has_seen_more_since_the_log_was_read_has_seen_no_other_history(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([(409, "{size}\n"), (200, "")])
    shown: list[int] = []

    def ask(witness: WitnessAddress, checkpoint: Any, old: int) -> tuple[int, str]:
        del witness, old
        shown.append(checkpoint.size)
        status, said = next(answers)
        if status == 409:  # another keeper has shown it what came since
            elsewhere(grow)
        return status, said.format(size=Log.objects.get(pk=GLOBAL_LOG).size)

    monkeypatch.setattr(witnesses_client, "_ask", ask)
    monkeypatch.setattr(witnesses_client, "_checked", lambda *_: "")
    monkeypatch.setattr(witnesses_client, "add_signatures", lambda **_: None)
    witness: Any = None

    assert ask_witness(witness, seen=1) == shown[1] > shown[0]


ROLLED_BACK = [IntegrityFinding(FindingCode.ROLLED_BACK, None, "0 leaves were signed", (0, sha256().hexdigest()))]


def go_on() -> None:
    begin_passes()
    while advance_next():
        pass


@pytest.fixture
def accused(auditor: Person) -> Verification:
    """The tenant's log with a finding that is none."""
    write_facts(auditor.by.tenant_id, 20)
    seal_everything()
    go_on()
    note_findings(auditor.by.tenant_id, ROLLED_BACK)
    return find_damaged(auditor.by.tenant_id).get()


@pytest.mark.req("TOOLS-18")
def test_a_finding_that_a_later_look_at_all_refutes_is_closed_by_a_fact(accused: Verification, auditor: Person) -> None:
    tenant_id, client = auditor.by.tenant_id, auditor.client()
    part = ask_verification(start=0, stop=10, by=auditor.by)
    go_on()
    part.refresh_from_db()
    assert (part.state, list(find_damaged(tenant_id))) == ("passed", [accused])

    whole = ask_verification(by=auditor.by)
    go_on()

    whole.refresh_from_db()
    accused.refresh_from_db()
    assert (whole.state, accused.state, accused.closed_by) == ("passed", "failed", whole)
    assert list_alarms(tenant_id) == []
    closed = Fact.objects.get(kind=Kind.VERIFICATION_CLOSED)
    assert closed.subject == accused.wire_id
    assert whole.wire_id in bytes(closed.leaf).decode()
    assert "log.rolled_back" in bytes(closed.leaf).decode()
    page = client.get(f"/evidence/integrity/{accused.wire_id}").content.decode()
    assert "Closed." in page
    assert whole.wire_id in page
    assert "The log does not verify." not in page
    assert "Finding no longer present" in page
    assert Fact.objects.filter(kind=Kind.VERIFICATION_FAILED).count() == 1


@pytest.mark.req("TOOLS-18")
def test_a_pass_of_the_verifier_itself_closes_it_too(accused: Verification, auditor: Person) -> None:
    for _ in range(2):  # the one that it was found in ends, and the next after it finds nothing
        Verification.objects.filter(state="running").update(
            lease_until=None, begun_at=timezone.now() - timedelta(hours=25)
        )
        go_on()
        assert find_damaged(auditor.by.tenant_id).exists()  # begun before, or not at its end yet
        Verification.objects.filter(found=0, state="running").update(begun_at=timezone.now())
    Verification.objects.update(lease_until=None)
    settings.TOOLHUB_VERIFY_EVERY_HOURS, hours = 0, settings.TOOLHUB_VERIFY_EVERY_HOURS
    try:
        go_on()
    finally:
        settings.TOOLHUB_VERIFY_EVERY_HOURS = hours

    accused.refresh_from_db()
    assert accused.closed_by is not None


@pytest.mark.req("TOOLS-18")
def test_what_was_found_after_a_look_began_is_not_closed_by_it(accused: Verification, auditor: Person) -> None:
    whole = ask_verification(by=auditor.by)
    note_findings(auditor.by.tenant_id, [IntegrityFinding(FindingCode.FACT_COLUMNS, 3, "subject")])
    go_on()

    whole.refresh_from_db()
    accused.refresh_from_db()
    assert whole.state == "passed"
    assert accused.closed_by is None
    assert list(find_damaged(auditor.by.tenant_id)) == [accused]


@pytest.mark.req("TOOLS-18")
def test_a_finding_is_an_error_once_and_not_with_each_look(
    accused: Verification, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "toolhub.verifier")
    Verification.objects.exclude(pk=accused.pk).delete()  # so that it is the next that is due
    verifier = Verifier()
    for _ in range(3):
        Verification.objects.update(lease_until=None)
        verifier.piece()
        note_findings(accused.tenant_id, ROLLED_BACK)

    assert caplog.messages == []
    note_findings(accused.tenant_id, [IntegrityFinding(FindingCode.FACT_COLUMNS, 3, "subject")])
    assert len(caplog.messages) == 1
    assert Fact.objects.filter(kind=Kind.VERIFICATION_FAILED).count() == 2  # of another kind: it is told, too


@pytest.mark.req("TOOLS-18")
def test_what_is_found_while_a_look_closes_findings_stays_open(
    accused: Verification, auditor: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ask_verification(by=auditor.by)
    read = find_damaged(accused.tenant_id)

    def find_more(row: Verification) -> bool:
        del row
        note_findings(accused.tenant_id, [IntegrityFinding(FindingCode.FACT_COLUMNS, 3, "subject")])
        return True

    monkeypatch.setattr(integrity_verifier, "_goes_on", find_more)
    monkeypatch.setattr(whole, "asked_by", "")
    assert read.filter(found_at__lt=whole.begun_at).exists()
    with transaction.atomic():
        integrity_verifier._close_others(whole)

    assert list(find_damaged(accused.tenant_id)) == [accused]
    assert not Fact.objects.filter(kind=Kind.VERIFICATION_CLOSED).exists()
