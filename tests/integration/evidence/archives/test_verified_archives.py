"""Verified archives: does the verifier find what was emptied, exchanged or lost, hide nothing for it, and wait for what is slow?"""

from __future__ import annotations

import io
import logging
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evidence.archives import bundles
from evidence.archives.bundles import BundlePlace, forget_bundles
from evidence.archives.leaves import load_leaves
from evidence.archives.object_stores import ArchiveUnavailable, FolderStore
from evidence.archives.services import ArchiveDiffers, archive_log
from evidence.integrity.alarms import list_alarms
from evidence.integrity.findings import FindingCode
from evidence.integrity.verifier import advance_next, begin_passes, verify_whole
from evidence.kinds import Kind
from evidence.log import reader
from evidence.log.origins import log_name
from evidence.models import Log, Verification
from evidence.problems import ArchivedFactLost, ArchivedFactUnavailable
from evidence.verify.merkle import leaf_hash
from evidence.verify.tiles import pack_entries, unpack_entries
from kernel.database.connections import one_snapshot
from kernel.leases import note_progress
from tests.integration.evidence.archives.test_archived_leaves import (
    bundle,
    empty,
    exchange,
    fact_at,
    hub,
    log,
    look_into_calls,
)
from tests.support.evidence_logs import seal_everything, write_facts
from tests.support.raw_database import sql

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Person

__all__ = ["bundle", "hub", "log"]
pytestmark = [pytest.mark.django_db, pytest.mark.unpaired]


def change_subject(log: Log, index: int) -> None:
    sql("UPDATE evidence_fact SET subject = %s WHERE id = %s", "snp_another", fact_at(log, index).pk)


def found_in(log: Log) -> set[tuple[FindingCode, int | None]]:
    return {(each.code, each.index) for each in verify_whole(log)}


def go_on(log: Log) -> Verification:
    """Whatever is due of this log, once."""
    begin_passes()
    Verification.objects.exclude(tenant_id=log.pk).delete()
    Verification.objects.update(lease_until=None)
    advance_next()
    return Verification.objects.get(tenant_id=log.pk, finished_at=None)


@pytest.mark.parametrize("with_archive", [True, False])
def test_an_emptied_leaf_that_was_never_archived_is_found_and_hides_no_other(
    log: Log, settings: Any, *, with_archive: bool
) -> None:
    settings.TOOLHUB_ARCHIVE_URL = settings.TOOLHUB_ARCHIVE_URL if with_archive else ""
    empty(log, 7)
    change_subject(log, 11)

    row = go_on(log)

    assert found_in(log) == {(FindingCode.FACT_MISSING, 7), (FindingCode.FACT_COLUMNS, 11)}
    assert {(each["code"], each["index"]) for each in row.findings} == found_in(log)
    assert (row.position, row.tries) == (log.size, 0)
    detail = next(each["detail"] for each in row.findings if each["index"] == 7)
    assert detail == fact_at(log, 7).wire_id


def test_an_emptied_leaf_behind_what_was_archived_is_found(log: Log, bundle: Path) -> None:
    assert found_in(log) == set()

    empty(log, 260)  # its bundle lies there, and is not full: it never was to leave

    assert found_in(log) == {(FindingCode.FACT_MISSING, 260)}


@pytest.mark.parametrize("damage", ["gone", "no bundle", "short", "emptied"])
def test_what_the_archive_has_no_more_is_found(log: Log, bundle: Path, damage: str) -> None:
    if damage == "gone":
        bundle.unlink()
    elif damage == "no bundle":
        bundle.write_bytes(b"\xff\xff\xff")
    elif damage == "short":
        bundle.write_bytes(pack_entries(unpack_entries(bundle.read_bytes())[:255]))
    else:
        exchange(bundle, 255, b"")
    change_subject(log, 270)

    missing = {255} if damage in ("short", "emptied") else set(range(1, 256))
    assert found_in(log) == {(FindingCode.FACT_MISSING, each) for each in missing} | {(FindingCode.FACT_COLUMNS, 270)}
    with pytest.raises(ArchivedFactLost):
        _ = fact_at(log, 255).text


def test_an_exchanged_leaf_is_found_and_nobody_reads_it(log: Log, bundle: Path) -> None:
    exchange(bundle, 5, unpack_entries(bundle.read_bytes())[6])

    assert {(FindingCode.FACT_HASH, 5), (FindingCode.LEAF_CHANGED, 5)} <= found_in(log)
    with pytest.raises(ArchivedFactLost):
        _ = fact_at(log, 5).content
    with pytest.raises(ArchivedFactLost):
        load_leaves([fact_at(log, 4), fact_at(log, 5)])
    with pytest.raises(ArchivedFactLost):
        list(reader.iter_leaves(log.pk, 0, 10))
    assert fact_at(log, 4).content["kind"] == Kind.SNAPSHOT_READ


def test_an_empty_entry_with_its_hash_beside_it_is_not_asked_for_without_end(log: Log, bundle: Path) -> None:
    exchange(bundle, 5, b"")
    sql("UPDATE evidence_fact SET leaf_hash = %s WHERE id = %s", leaf_hash(b""), fact_at(log, 5).pk)

    with pytest.raises(ArchivedFactUnavailable):
        _ = fact_at(log, 5).text


def test_the_verifier_does_not_believe_what_it_has_read_before(log: Log, bundle: Path) -> None:
    assert fact_at(log, 5).text
    assert found_in(log) == set()

    exchange(bundle, 5, unpack_entries(bundle.read_bytes())[6])

    assert (FindingCode.FACT_HASH, 5) in found_in(log)


def test_who_reads_believes_it_for_minutes(log: Log, bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fact_at(log, 5).text
    bundle.unlink()
    assert fact_at(log, 6).text

    monkeypatch.setattr("evidence.archives.bundles.time", SimpleNamespace(monotonic=lambda: 10.0**9))

    with pytest.raises(ArchivedFactUnavailable):
        _ = fact_at(log, 5).text


def test_the_verifier_stands_before_what_does_not_answer_and_tells_what_else_it_has_found(
    log: Log, bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change_subject(log, 270)
    empty(log, 280)
    sql("UPDATE evidence_fact SET leaf_hash = %s WHERE id = %s", bytes(32), fact_at(log, 3).pk)
    (tmp_path / "kept").rename(tmp_path / "away")
    expected = {
        (FindingCode.FACT_COLUMNS, 270),
        (FindingCode.FACT_MISSING, 280),
        (FindingCode.LEAF_CHANGED, 3),
    }

    for tries in (1, 2, 3):
        forget_bundles()
        with caplog.at_level(logging.WARNING, "toolhub.verifier"):
            row = go_on(log)
        assert (row.position, row.tries, row.stopped_by) == (0, tries, "ArchivedFactUnavailable")
        assert {(each["code"], each["index"]) for each in row.findings} == expected
        assert row.found == 3
    assert "the archive does not answer for 255" in caplog.text
    assert {each.kind for each in list_alarms(log.pk)} == {"damaged", "stuck"}

    (tmp_path / "away").rename(tmp_path / "kept")
    forget_bundles()
    row = go_on(log)
    assert (row.position, row.tries, row.stopped_by, row.found) == (log.size, 0, "", 4)  # and the hash beside leaf 3


def test_the_command_verifies_what_it_can_and_every_log(
    log: Log, bundle: Path, tmp_path: Path, stranger: Person
) -> None:
    another = look_into_calls(stranger.by.tenant_id, 256)
    archive_log(another, FolderStore(tmp_path / "kept"))
    seal_everything()
    empty(another, 2)
    origins = ", ".join(each.origin for each in Log.objects.order_by("pk") if each.pk in (log.pk, another.pk))
    (tmp_path / "kept").rename(tmp_path / "away")
    said = io.StringIO()

    with pytest.raises(CommandError, match=f"Not all of {origins} could be verified"):
        call_command("verify_log", stdout=said)
    lines = said.getvalue().splitlines()
    assert len(lines) == Log.objects.count()
    (stopped,) = (line for line in lines if line.startswith(f"{log.origin}:"))
    assert "nothing found" in stopped
    assert stopped.endswith("The archive does not answer; 255 leaves were not verified.")

    change_subject(log, 270)
    forget_bundles()
    with pytest.raises(SystemExit) as exit:
        call_command("verify_log", stdout=said)
    assert exit.value.code == 2
    assert f"leaf 270: {FindingCode.FACT_COLUMNS.label}" in said.getvalue()


def test_one_tenants_emptied_leaf_keeps_no_other_log_from_its_archive(
    log: Log, stranger: Person, settings: Any, tmp_path: Path
) -> None:
    settings.TOOLHUB_DATA_DIR = tmp_path
    look_into_calls(stranger.by.tenant_id, 3)
    empty(log, 7)
    complaints = io.StringIO()

    with pytest.raises(CommandError, match="1 of 3 logs were not archived"):
        call_command("archive", stdout=io.StringIO(), stderr=complaints)

    assert f"A leaf of {log.origin} has no text in the database" in complaints.getvalue()
    assert (tmp_path / "kept" / log_name(stranger.by.tenant_id) / "checkpoint").is_file()


def test_a_log_whose_months_were_dropped_is_copied_elsewhere_with_its_archive_first(
    log: Log, bundle: Path, settings: Any, tmp_path: Path
) -> None:
    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}/other"
    other = FolderStore(tmp_path / "other")
    with pytest.raises(ArchiveUnavailable, match="copy all objects of that one first"):
        archive_log(log, other)  # which is not there
    (tmp_path / "other").mkdir()
    forget_bundles()
    with pytest.raises(ArchiveDiffers, match="Then copy all objects of that one first"):
        archive_log(log, other)
    (tmp_path / "other").rename(tmp_path / "begun")

    (tmp_path / "kept").rename(tmp_path / "other")
    forget_bundles()
    write_facts(log.pk, 3)
    seal_everything()

    done = archive_log(Log.objects.get(pk=log.pk), other)
    assert done is not None
    assert done.stop == log.size + 3


def test_no_snapshot_is_open_while_the_verifier_reads_the_archive(
    log: Log, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_open, read, asked = False, FolderStore.read, list[str]()

    @contextmanager
    def note_snapshot() -> Iterator[None]:
        nonlocal is_open
        with one_snapshot():
            is_open = True
            try:
                yield
            finally:
                is_open = False

    def note(store: FolderStore, name: str) -> bytes | None:
        assert not is_open
        asked.append(name)
        return read(store, name)

    monkeypatch.setattr("evidence.integrity.verifier.one_snapshot", note_snapshot)
    monkeypatch.setattr(FolderStore, "read", note)
    change_subject(log, 5)

    assert found_in(log) == {(FindingCode.FACT_COLUMNS, 5)}
    row = go_on(log)

    assert (row.position, row.found, row.tries) == (log.size, 1, 0)
    assert len(asked) == 2  # once by each of the two


@pytest.mark.parametrize("archived", ["before the look", "meanwhile"])
def test_a_month_that_is_dropped_while_the_verifier_looks_is_read_before_the_next_look(
    archived: str, log: Log, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is at hand is what the look before lacked; the next one may lack more."""
    read = FolderStore.read

    def archive() -> None:
        archive_log(Log.objects.get(pk=log.pk), FolderStore(bundle.parents[3]))
        seal_everything()

    def drop_more(store: FolderStore, name: str) -> bytes | None:
        monkeypatch.setattr(FolderStore, "read", read)
        if archived == "meanwhile":
            archive()
        empty(log, *range(256, 290))
        return read(store, name)

    write_facts(log.pk, 512 - log.size)
    seal_everything()
    if archived == "before the look":
        archive()
    monkeypatch.setattr(FolderStore, "read", drop_more)

    assert found_in(log) == set()
    assert fact_at(log, 260).has_archived_leaf


@pytest.mark.parametrize("count", [1, 3])
def test_each_bundle_that_comes_is_progress_of_who_has_a_lease(
    count: int, log: Log, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = list[str]()

    def note_too() -> None:
        noted.append(threading.current_thread().name)  # a thread that reads knows of no lease
        note_progress()

    monkeypatch.setattr(bundles, "note_progress", note_too)

    assert bundles.read_bundles(BundlePlace(log.pk, n) for n in range(count))[BundlePlace(log.pk, 0)]
    assert noted == [threading.current_thread().name] * count
