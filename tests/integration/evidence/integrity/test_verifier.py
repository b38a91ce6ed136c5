"""Verifier: does the verifier follow the log, find what was changed, say so to whom it concerns, and leave the rest readable?"""

from __future__ import annotations

import json
import logging
import zlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db.models import F
from django.utils import timezone

from access.models import Delivery, Notification
from access.notifications.evidence_alarms import EVENT, notify_alarms
from evidence.integrity import tree_walk, verifier
from evidence.integrity.alarms import find_damaged, list_alarms
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.rollback_detection import verify_and_keep
from evidence.integrity.services import ask_verification
from evidence.integrity.verifier import advance_next, begin_passes, verify_whole
from evidence.kinds import Kind
from evidence.models import GLOBAL_LOG, Checkpoint, Fact, Log, Seal, Verification
from evidence.packed_leaves import pack_leaf
from kernel.problems import Conflict, SchemaInvalid
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.raw_database import copy_of_everything, put_back, sql, take_down_triggers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from access.models import Tenant
    from evidence.log.signers.base import CheckpointSigner
    from tests.conftest import Caller, Person

pytestmark = [pytest.mark.django_db, pytest.mark.unpaired]
BAD = 11
BOMB = zlib.compress(bytes(100_000_000), wbits=-15)


@pytest.fixture(autouse=True)
def keys() -> Iterator[CheckpointSigner]:
    with signing_with() as found:
        yield found


@pytest.fixture
def log(tenant: Tenant) -> Log:
    """Some 300 leaves with several checkpoints."""
    take_down_triggers()
    for count in (40, 150, 90):
        write_facts(tenant.pk, count)
        seal_everything(batch=64)
    return Log.objects.get(pk=tenant.pk)


def change_a_fact(log: Log) -> Fact:
    fact = Seal.objects.get(tenant_id=log.pk, leaf_index=BAD).fact
    sql("UPDATE evidence_fact SET subject = %s WHERE id = %s", "soul:tool:never.was.this", fact.pk)
    return Fact.objects.get(pk=fact.pk)


def go_on() -> None:
    """Whatever is due now; not what is looked at again later."""
    begin_passes()
    while advance_next():
        pass


def passing(log: Log) -> Verification:
    return Verification.objects.get(tenant_id=log.pk, asked_by="", finished_at=None)


@pytest.mark.req("TOOLS-18")
def test_a_pass_reads_every_leaf_and_follows_what_comes(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_walk, "PIECE", 64)
    go_on()
    first = passing(log)
    assert (first.position, first.found, first.state) == (log.size, 0, "running")
    assert first.checkpoints == Checkpoint.objects.filter(tenant_id=log.pk).count() > 3

    write_facts(log.pk, 30)
    seal_everything()
    Verification.objects.update(lease_until=None)
    go_on()
    assert (passing(log).pk, passing(log).position) == (first.pk, log.size + 30)


@pytest.mark.req("TOOLS-18")
def test_after_a_day_a_pass_ends_and_the_next_begins_at_the_first_leaf(log: Log) -> None:
    go_on()
    old = passing(log)
    Verification.objects.update(lease_until=None, begun_at=timezone.now() - timedelta(hours=25))
    go_on()

    old.refresh_from_db()
    assert old.state == "passed"
    assert Fact.objects.filter(subject=old.wire_id, kind=Kind.VERIFICATION_PASSED).count() == 1
    seal_everything()
    go_on()
    assert passing(log).position == log.size + 1  # the fact that the old one has passed is in the log too


@pytest.mark.req("TOOLS-18")
def test_a_keeper_that_was_killed_is_followed_by_another_where_it_was(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_walk, "PIECE", 64)
    begin_passes()
    Verification.objects.exclude(tenant_id=log.pk).delete()
    advance_next()
    assert passing(log).position == 64
    Verification.objects.update(lease_until=timezone.now() + timedelta(minutes=1))  # claimed, and never given back
    assert advance_next() is None
    Verification.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    advance_next()

    assert (passing(log).position, passing(log).found) == (128, 0)


@pytest.mark.req("CARD-6", "TOOLS-18")
def test_a_changed_fact_is_found_told_of_once_and_everything_else_stays_readable(
    log: Log, auditor: Person, operator: Person, caller: Caller
) -> None:
    Notification.objects.create(
        tenant_id=log.pk, channel="email", target="ops@example.org", events=[EVENT], created_by="usr_x"
    )
    go_on()
    assert list_alarms(log.pk) == []
    fact = change_a_fact(log)
    ask_verification(by=auditor.by)
    go_on()

    row = Verification.objects.exclude(asked_by="").get()
    assert (row.state, row.first_bad, row.found) == ("failed", BAD, 1)
    assert row.findings == [{"code": "fact.columns", "index": BAD, "detail": "subject"}]
    found = Fact.objects.get(subject=row.wire_id, kind=Kind.VERIFICATION_FAILED)
    assert json.loads(bytes(found.leaf))["data"]["first_bad"] == BAD
    (alarm,) = list_alarms(log.pk)
    assert str(BAD) in alarm.said
    assert (notify_alarms(), notify_alarms()) == (1, 0)
    assert Delivery.objects.get(event=EVENT).body == {"alarm": "damaged", "url": "/evidence/integrity"}

    client = auditor.client()
    assert alarm.title in client.get("/").content.decode()
    for path in ("/evidence/integrity", f"/evidence/integrity/{row.wire_id}"):
        assert str(BAD) in client.get(path).content.decode()
    assert "subject" in client.get(f"/evidence/{fact.wire_id}").content.decode()
    assert "This fact was changed" in client.get(f"/evidence/{fact.wire_id}").content.decode()
    other = Seal.objects.get(tenant_id=log.pk, leaf_index=BAD + 1).fact
    assert "This fact was changed" not in client.get(f"/evidence/{other.wire_id}").content.decode()
    said = caller.get("/evidence/integrity").json()["data"]
    assert (said["alarms"][0]["kind"], said["size"]) == ("damaged", log.size)


@pytest.mark.req("CARD-6", "TOOLS-18")
@pytest.mark.parametrize(
    "stored",
    [b"\xff\xfe{", b"\1{}", pack_leaf(b'{"n":"' + b"x" * 900 + b'"}')[:-1], b"\1" + BOMB],
    ids=["no text", "nothing packed", "cut off", "a bomb"],
)
def test_a_leaf_that_is_none_any_more_is_a_finding_and_still_has_its_page(
    stored: bytes, log: Log, auditor: Person
) -> None:
    fact = Seal.objects.get(tenant_id=log.pk, leaf_index=BAD).fact
    sql("UPDATE evidence_fact SET leaf = %s WHERE id = %s", stored, fact.pk)

    found = {finding.code for finding in verify_whole(log) if finding.index == BAD}
    page = auditor.client().get(f"/evidence/{fact.wire_id}")

    assert {FindingCode.FACT_HASH, FindingCode.LEAF_CHANGED} <= found
    assert page.status_code == 200
    assert "This fact was changed" in page.content.decode()


@pytest.mark.req("TOOLS-18")
def test_an_alarm_ends_when_the_whole_log_verifies_again(log: Log, auditor: Person) -> None:
    fact = Seal.objects.get(tenant_id=log.pk, leaf_index=BAD).fact
    change_a_fact(log)
    go_on()
    assert [alarm.kind for alarm in list_alarms(log.pk)] == ["damaged"]
    sql("UPDATE evidence_fact SET subject = %s WHERE id = %s", fact.subject, fact.pk)
    ask_verification(start=5, by=auditor.by)
    go_on()
    assert list_alarms(log.pk)
    ask_verification(by=auditor.by)
    go_on()

    assert list_alarms(log.pk) == []
    Verification.objects.update(lease_until=None)
    go_on()
    assert list_alarms(log.pk) == []


@pytest.mark.req("TOOLS-18")
def test_of_a_range_the_tree_before_it_counts_too(log: Log, auditor: Person) -> None:
    good = ask_verification(start=100, stop=200, by=auditor.by)
    go_on()
    good.refresh_from_db()
    assert (good.state, good.position) == ("passed", 200)
    sql("UPDATE evidence_tile SET hashes = %s WHERE tenant_id = %s AND level = 0 AND n = 0", bytes(8192), log.pk)
    bad = ask_verification(start=100, stop=200, by=auditor.by)
    go_on()
    bad.refresh_from_db()
    assert bad.state == "failed"


@pytest.mark.req("TOOLS-18")
def test_a_range_that_is_not_there_and_too_many_at_once_are_refused(log: Log, auditor: Person) -> None:
    for start, stop in ((5, 5), (0, log.size + 1), (-1, 4)):
        with pytest.raises(SchemaInvalid):
            ask_verification(start=start, stop=stop, by=auditor.by)
    for _ in range(3):
        ask_verification(by=auditor.by)
    with pytest.raises(Conflict):
        ask_verification(by=auditor.by)


@pytest.mark.req("TOOLS-18")
def test_silence_is_an_alarm(log: Log) -> None:
    write_facts(log.pk, 1)
    long_ago = timezone.now() - timedelta(minutes=11)
    sql("UPDATE evidence_log SET signed_at = %s WHERE tenant_id = %s", str(long_ago), log.pk)
    assert [alarm.kind for alarm in list_alarms(log.pk)] == ["not_signed"]
    old = Fact.objects.filter(pending__isnull=False).get()
    id = type(old.pk)(int=int(long_ago.timestamp() * 1000) << 80 | 7)
    sql("UPDATE evidence_pending SET fact_id = %s WHERE fact_id = %s", id, old.pk)
    assert [alarm.kind for alarm in list_alarms(log.pk)] == ["not_sealed"]


@pytest.mark.req("TOOLS-18")
def test_a_verifier_that_does_not_come_any_more_is_an_alarm(log: Log) -> None:
    begin_passes()
    go_on()
    assert list_alarms(log.pk) == []
    hours_ago = timezone.now() - timedelta(hours=7)
    Verification.objects.filter(tenant_id=log.pk, asked_by="").update(lease_until=hours_ago)
    assert [(alarm.kind, alarm.since) for alarm in list_alarms(log.pk)] == [("not_verified", hours_ago)]


@pytest.mark.req("TOOLS-18")
def test_a_database_that_was_put_back_is_found_with_the_kept_checkpoint(log: Log, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    older = copy_of_everything()
    write_facts(log.pk, 5)
    seal_everything()
    assert verify_and_keep(kept) == []
    put_back(older)

    assert [
        finding for each in Log.objects.all() for finding in verify_whole(each)
    ] == []  # each log by itself is whole
    found = verify_and_keep(kept)
    assert [str(finding.code) for finding in found] == ["log.rolled_back"]
    verifier.note_findings(GLOBAL_LOG, found)
    verifier.note_findings(GLOBAL_LOG, found)
    assert Fact.objects.filter(kind=Kind.VERIFICATION_FAILED).count() == 1
    write_facts(log.pk, 9)
    seal_everything()
    assert [str(finding.code) for finding in verify_and_keep(kept)] == [
        "log.rolled_back"
    ]  # growing again hides nothing
    with pytest.raises(SystemExit) as ended:
        call_command("verify_log", checkpoint=str(kept))
    assert ended.value.code == 2


@pytest.mark.req("TOOLS-18")
def test_the_command_verifies_everything_and_names_the_first_bad_leaf(log: Log, capsys: Any) -> None:
    call_command("verify_log")
    assert f"{log.size} leaves" in capsys.readouterr().out
    change_a_fact(log)
    with pytest.raises(SystemExit) as ended:
        call_command("verify_log")
    assert ended.value.code == 2
    assert f"leaf {BAD}" in capsys.readouterr().out


@pytest.mark.req("CARD-6", "TOOLS-18")
def test_people_have_a_range_verified_and_see_what_came_of_it(log: Log, auditor: Person) -> None:
    client = auditor.client()
    asked = client.post("/evidence/integrity/verify", {"start": "3", "stop": "9"})
    assert asked.status_code == 302
    go_on()
    assert "as it was sealed" in client.get(asked.headers["Location"]).content.decode()
    assert client.post("/evidence/integrity/verify", {"start": "9", "stop": "3"}).status_code == 422
    note = client.get(f"/evidence/checkpoints/{log.size}")
    assert note.content.decode() == Checkpoint.objects.get(tenant_id=log.pk, size=log.size).note


@pytest.mark.req("TOOLS-18")
def test_a_roll_back_is_closed_only_when_the_log_goes_on_from_what_was_seen(log: Log, settings: Any) -> None:
    older = copy_of_everything()
    write_facts(log.pk, 30)
    seal_everything()
    go_on()
    newer = copy_of_everything()
    put_back(older)
    Verification.objects.update(lease_until=None)
    go_on()
    settings.TOOLHUB_VERIFY_EVERY_HOURS = -1  # each pass ends when it has come to the end
    damage = Verification.objects.get(tenant_id=log.pk, found=1)
    assert damage.findings[0]["code"] == "log.rolled_back"

    assert whole_pass(log).state == "passed"  # the log is whole by itself
    assert list(find_damaged(log.pk)) == [damage]
    put_back(newer)
    assert whole_pass(log).state == "passed"
    assert list(find_damaged(log.pk)) == []


def whole_pass(log: Log) -> Verification:
    """Of the verifier itself, begun now."""
    row = Verification.objects.create(tenant_id=log.pk, begun_at=timezone.now() + timedelta(seconds=1))
    Verification.objects.exclude(pk=row.pk).filter(state="running").delete()
    advance_next()
    row.refresh_from_db()
    return row


@pytest.mark.req("TOOLS-18")
def test_a_graver_finding_behind_a_lesser_one_is_an_alarm_of_its_own_and_each_channel_is_told(
    log: Log, auditor: Person
) -> None:
    Notification.objects.create(
        tenant_id=log.pk, channel="email", target="ops@example.org", events=[EVENT], created_by="usr_x"
    )
    go_on()
    change_a_fact(log)
    ask_verification(by=auditor.by)
    go_on()
    assert (notify_alarms(), notify_alarms()) == (1, 0)

    verifier.note_findings(
        log.pk, [IntegrityFinding(FindingCode.ROLLED_BACK, None, "9000 leaves were seen")]
    )  # on an older row
    assert next(alarm.said for alarm in list_alarms(log.pk)) == str(FindingCode.ROLLED_BACK.label)
    assert (len(list_alarms(log.pk)), notify_alarms(), notify_alarms()) == (2, 1, 0)
    verifier.note_findings(log.pk, [IntegrityFinding(FindingCode.FACT_MISSING, 7)])  # on the same row
    assert (len(list_alarms(log.pk)), notify_alarms(), notify_alarms()) == (2, 1, 0)
    ask_verification(by=auditor.by)
    go_on()
    assert (len(list_alarms(log.pk)), notify_alarms()) == (2, 0)  # nothing that was not found before


@pytest.mark.req("TOOLS-18")
def test_one_is_told_of_a_further_kind_however_many_kinds_were_found_before(log: Log) -> None:
    Notification.objects.create(
        tenant_id=log.pk, channel="email", target="ops@example.org", events=[EVENT], created_by="usr_x"
    )
    begin_passes()
    codes = sorted(FindingCode, reverse=True)
    verifier.note_findings(log.pk, [IntegrityFinding(code, 7) for code in codes[:-1]])
    assert (notify_alarms(), notify_alarms()) == (1, 0)

    verifier.note_findings(log.pk, [IntegrityFinding(codes[-1], 7)])

    assert (notify_alarms(), notify_alarms()) == (1, 0)


@pytest.mark.req("TOOLS-18")
def test_a_finding_is_noted_though_a_keeper_takes_the_pass_at_the_same_moment(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_passes()
    taken = iter([True, True])
    find_new = verifier._new_findings

    def find_while_taken(row: Verification, *found: Any) -> list[dict[str, Any]]:
        if next(taken, False):
            Verification.objects.filter(pk=row.pk).update(
                lease_until=timezone.now() + timedelta(seconds=row.pk.int % 60)
            )
        return find_new(row, *found)

    monkeypatch.setattr(verifier, "_new_findings", find_while_taken)

    verifier.note_findings(log.pk, [IntegrityFinding(FindingCode.FACT_MISSING, 7)])

    assert [each["index"] for each in passing(log).findings] == [7]


@pytest.mark.req("TOOLS-18")
def test_of_each_code_the_first_are_listed_and_what_stands_is_counted_once(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(verifier, "MOST_FINDINGS", 3)
    for leaf in range(10, 20):
        fact = Seal.objects.get(tenant_id=log.pk, leaf_index=leaf).fact
        sql("UPDATE evidence_fact SET subject = %s WHERE id = %s", "soul:tool:never.was.this", fact.pk)
    Log.objects.filter(pk=log.pk).update(frontier=bytes(len(bytes(log.frontier))))
    begin_passes()
    Verification.objects.exclude(tenant_id=log.pk).delete()
    for n in range(5):
        sql("INSERT INTO evidence_tile (tenant_id, level, n, hashes) VALUES (%s, %s, %s, %s)", log.pk, 7, n, b"")
    caplog.set_level(logging.ERROR, "toolhub.verifier")
    for _ in range(4):
        Verification.objects.update(lease_until=None)
        advance_next()

    row = passing(log)
    codes = [each["code"] for each in row.findings]
    assert (row.found, codes.count("fact.columns")) == (12, 3)
    assert {"log.wrong", "tile.missing"} < set(codes)
    assert len(caplog.messages) == 1
    assert Fact.objects.filter(kind=Kind.VERIFICATION_FAILED).count() == 1
    monkeypatch.setattr(verifier, "MOST_FINDINGS", 2)
    pending = [IntegrityFinding(FindingCode.PENDING_WRONG, None, f"fct_{n}") for n in range(4)]
    for _ in range(3):
        verifier.note_findings(log.pk, pending)
    assert passing(log).found == 16
    assert len(caplog.messages) == 2


@pytest.mark.req("TOOLS-18")
def test_a_roll_back_is_one_finding_though_the_log_grows(log: Log, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    older = copy_of_everything()
    for _ in range(5):
        write_facts(log.pk, 5)
        seal_everything()
    assert verify_and_keep(kept) == []
    put_back(older)
    for _ in range(3):
        verifier.note_findings(GLOBAL_LOG, verify_and_keep(kept))
        Log.objects.filter(pk=GLOBAL_LOG).update(size=F("size") + 1)

    assert Verification.objects.get(tenant_id=GLOBAL_LOG).found == 1
