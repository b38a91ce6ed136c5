"""Archived leaves: is one that was emptied or exchanged found, does it hide no other, and does nobody read what was not sealed?"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from django.db import transaction

from evidence import services as evidence
from evidence.archives.bundles import SILENT_S, _open_archive, forget_bundles
from evidence.archives.leaves import load_leaves, load_leaves_at_hand
from evidence.archives.object_stores import ArchiveUnavailable, FolderStore
from evidence.archives.services import ArchiveDiffers, archive_log
from evidence.exports.jobs import advance_next as make_piece
from evidence.exports.services import make_export
from evidence.kinds import Kind
from evidence.leaves.custody import OpenedSnapshot
from evidence.log.origins import log_name
from evidence.models import ExportJob, ExportState, Fact, Log, Seal
from evidence.problems import ArchivedFactLost, ArchivedFactUnavailable
from evidence.search.indexer import tags_of_facts
from evidence.verify.tiles import pack_entries, unpack_entries
from kernel.ids import encode, new_id
from kernel.principal import Principal
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.raw_database import sql, take_down_triggers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from uuid import UUID

    from access.models import Tenant
    from tests.conftest import Person

pytestmark = [pytest.mark.django_db, pytest.mark.unpaired]


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, settings: Any) -> Iterator[None]:
    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}/kept"
    forget_bundles()
    take_down_triggers()
    with signing_with():
        yield
    forget_bundles()


def look_into_calls(tenant_id: UUID, count: int) -> Log:
    """Of a new tenant they are leaves from 1 on: the first is about the tenant."""
    by = Principal.system("test", tenant_id=tenant_id)
    with transaction.atomic():
        for number in range(count):
            evidence.record(
                kind=Kind.SNAPSHOT_READ,
                subject=encode("snp", new_id()),
                actor=by,
                invocation_id=new_id(),
                data=OpenedSnapshot(snapshot_kind="arguments", commitment=f"sha256:{number:064x}", reason=""),
            )
    seal_everything()
    return Log.objects.get(pk=tenant_id)


@pytest.fixture
def log(tenant: Tenant) -> Log:
    return look_into_calls(tenant.pk, 300)


@pytest.fixture
def bundle(log: Log, tmp_path: Path) -> Path:
    """The first one, of which all leaves about calls are in the archive alone."""
    archive_log(log, FolderStore(tmp_path / "kept"))
    seal_everything()
    empty(log, *range(1, 256))
    return tmp_path / "kept" / log_name(log.pk) / "tile/entries/000"


def fact_at(log: Log, index: int) -> Fact:
    return Fact.objects.get(seal__tenant_id=log.pk, seal__leaf_index=index)


def empty(log: Log, *indexes: int) -> None:
    """As who owns the tables can, and as a month leaves."""
    ids = Seal.objects.filter(tenant_id=log.pk, leaf_index__in=indexes).values_list("fact_id", flat=True)
    for id in ids:
        sql("UPDATE evidence_fact SET leaf = %s WHERE id = %s", b"", id)


def exchange(bundle: Path, index: int, leaf: bytes) -> None:
    found = unpack_entries(bundle.read_bytes())
    bundle.write_bytes(pack_entries([*found[:index], leaf, *found[index + 1 :]]))


def test_an_export_waits_for_an_archive_that_does_not_answer(
    log: Log, bundle: Path, tmp_path: Path, operator: Person
) -> None:
    job = make_export(by=operator.by, format="jsonl")
    (tmp_path / "kept").rename(tmp_path / "away")
    make_piece()
    job.refresh_from_db()
    assert (job.state, job.problem) == (ExportState.RUNNING, "")

    (tmp_path / "away").rename(tmp_path / "kept")
    forget_bundles()
    ExportJob.objects.update(lease_until=None)
    while make_piece():
        pass

    job.refresh_from_db()
    assert (job.state, job.rows) == (ExportState.DONE, job.stop)


@pytest.mark.parametrize("query", ["", "kind:snapshot.read"])
def test_an_export_of_what_the_archive_has_lost_fails_and_says_what_to_do(
    log: Log, bundle: Path, operator: Person, query: str
) -> None:
    job = make_export(by=operator.by, format="jsonl", query=query)
    bundle.unlink()
    while make_piece():
        pass

    job.refresh_from_db()
    assert job.state == ExportState.FAILED
    assert "`manage.py verify_log` names them; restore the archive's objects" in job.problem


def test_an_export_fails_too_whose_search_would_have_to_know_what_is_lost(log: Log, bundle: Path) -> None:
    """What a call is, its Begin says, which may be in another bundle than the facts that are asked about."""
    bundle.unlink()
    with pytest.raises(ArchivedFactLost):
        tags_of_facts([fact_at(log, 5)])


def test_an_archive_that_is_silent_is_not_said_to_be_emptied(log: Log, bundle: Path, tmp_path: Path) -> None:
    empty(log, *range(256, 290))  # as months left, and their bundle is read to go on
    write_facts(log.pk, 3)
    seal_everything()
    before, store = Log.objects.get(pk=log.pk), FolderStore(tmp_path / "kept")
    silent = patch("evidence.archives.bundles.open_store", side_effect=ArchiveUnavailable("timed out"))

    with silent, pytest.raises(ArchiveUnavailable, match="Run it again when it does"):
        forget_bundles()
        _open_archive.cache_clear()
        archive_log(before, store)
    _open_archive.cache_clear()
    forget_bundles()
    with pytest.raises(ArchiveDiffers, match="it was emptied"):
        archive_log(before, store)


def test_an_archive_that_was_silent_is_not_asked_by_the_next_one(
    log: Log, bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").rename(tmp_path / "away")
    with pytest.raises(ArchivedFactUnavailable):
        _ = fact_at(log, 5).text
    (tmp_path / "away").rename(tmp_path / "kept")
    with pytest.raises(ArchivedFactUnavailable):
        _ = fact_at(log, 5).text

    later = time.monotonic() + SILENT_S
    monkeypatch.setattr("evidence.archives.bundles.time", SimpleNamespace(monotonic=lambda: later))

    assert fact_at(log, 5).text


def test_leaves_of_a_bundle_are_read_with_few_questions(
    log: Log, bundle: Path, django_assert_max_num_queries: Any
) -> None:
    facts = list(Fact.objects.filter(seal__tenant_id=log.pk, seal__leaf_index__lt=200))

    with django_assert_max_num_queries(3):
        load_leaves(facts)


@pytest.mark.parametrize("damage", ["gone", "one exchanged", "one not sealed"])
def test_what_a_list_lacks_is_asked_for_once_and_marked_at_its_fact(
    log: Log, bundle: Path, damage: str, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    facts = list(Fact.objects.filter(seal__tenant_id=log.pk, seal__leaf_index__in=range(1, 50)).order_by("id"))
    lost = {facts[7].pk}
    if damage == "gone":
        bundle.unlink()
        lost = {fact.pk for fact in facts}
    elif damage == "one exchanged":
        exchange(bundle, 8, b"another")
    else:
        sql("DELETE FROM evidence_seal WHERE fact_id = %s", facts[7].pk)
    asked, read = list[str](), FolderStore.read

    def note(store: FolderStore, name: str) -> bytes | None:
        asked.append(name)
        return read(store, name)

    monkeypatch.setattr(FolderStore, "read", note)

    with django_assert_num_queries(1):
        load_leaves_at_hand(facts)

    assert len(asked) == 1
    assert {fact.pk for fact in facts if isinstance(fact.leaf_problem, ArchivedFactLost)} == lost
    assert all(bool(fact.leaf) != (fact.pk in lost) for fact in facts)


def test_what_is_put_right_in_the_archive_is_on_the_next_page(log: Log, bundle: Path) -> None:
    data = bundle.read_bytes()
    bundle.unlink()
    load_leaves_at_hand([lost := fact_at(log, 5)])
    bundle.write_bytes(data)

    load_leaves_at_hand([found := fact_at(log, 5)])

    assert isinstance(lost.leaf_problem, ArchivedFactLost)
    assert found.leaf_problem is None
    assert found.text
