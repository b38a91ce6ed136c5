"""Dropped months: is all of a fact there whose leaf is in the archive alone, and does nothing leave that is not safe there?"""

from __future__ import annotations

import io
import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection, connections, transaction
from django.utils import timezone
from psycopg.pq import TransactionStatus

from evidence import services as evidence
from evidence.archives.bundles import forget_bundles
from evidence.archives.object_stores import FolderStore
from evidence.archives.services import ArchiveDiffers, archive_log, list_archived_logs
from evidence.integrity.findings import FindingCode
from evidence.integrity.verifier import verify_whole
from evidence.kinds import Kind
from evidence.leaves.custody import OpenedSnapshot
from evidence.log import reader
from evidence.log.origins import log_name
from evidence.models import Anchor, AnchorKind, Fact, Log
from evidence.months import drops, partitions
from evidence.months.partitions import FIRST, list_partition_faults
from evidence.problems import ArchivedFactUnavailable
from evidence.search.engine import find_by_tags
from evidence.search.indexer import forget_index, index_tenant
from evidence.search.tags import TagQuery, exact_span
from evidence.verify import merkle, notes
from evidence.verify.proofs import InclusionProof
from kernel.ids import encode, new_id
from kernel.principal import Principal
from tests.postgresql.test_hub_role import login
from tests.postgresql.test_months import NOW, an_id, begin_meanwhile, reading
from tests.support.doc_blocks import ROOT, blocks_of
from tests.support.evidence_logs import check_log, seal_everything, signing_with, write_facts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path
    from uuid import UUID

__all__ = ["login"]
pytestmark = pytest.mark.django_db(transaction=True)
OLD = NOW - timedelta(days=62)
TENANT = new_id()


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}"
    settings.TOOLHUB_WITNESSES, settings.TOOLHUB_ANCHOR_GIT = [], ""
    settings.TOOLHUB_ANCHOR_FILE = str(tmp_path / "anchors")
    # As if it were months later: where a table with facts was divided, the first part goes on to the end of this month or the next.
    monkeypatch.setattr(drops, "CLOCKS_DIFFER_MS", timedelta(days=-100) // timedelta(milliseconds=1))
    forget_bundles()
    with signing_with():
        yield
    forget_bundles()


def count_up(moment: datetime) -> Iterator[datetime]:
    """In the order of which leaves are sealed."""
    return (moment + timedelta(milliseconds=n) for n in itertools.count())


def look_into_old_calls(count: int, monkeypatch: pytest.MonkeyPatch, moment: datetime = OLD) -> None:
    """Facts about calls of two months ago, or another time, which any number may be of."""
    by = Principal.system("test", tenant_id=TENANT)
    with monkeypatch.context() as patched, transaction.atomic():
        moments = count_up(moment)
        patched.setattr(evidence, "new_id", lambda: an_id(next(moments)))
        for number in range(count):
            evidence.record(
                kind=Kind.SNAPSHOT_READ,
                subject=encode("snp", new_id()),
                actor=by,
                invocation_id=an_id(moment),
                data=OpenedSnapshot(snapshot_kind="arguments", commitment=f"sha256:{number:064x}", reason=""),
            )
        evidence.record(kind=Kind.TOOL_PAUSED, subject="soul:tool:a.b.c", actor=by)


def archive(store: FolderStore, *, seen: bool = True) -> None:
    seal_everything()
    for log in list_archived_logs():
        archive_log(log, store)
    seal_everything()  # what the hub's log says of it
    if seen:
        Anchor.objects.update_or_create(
            name="file", defaults={"kind": AnchorKind.FILE, "size": 10**6, "next_attempt_at": timezone.now()}
        )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
    """With 600 leaves, of which 599 are about calls, and two bundles are full."""
    found = FolderStore(tmp_path)
    look_into_old_calls(599, monkeypatch)
    return found


def stored() -> dict[UUID, bytes]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, leaf FROM evidence_fact WHERE tenant_id = %s", [TENANT])
        return {id: bytes(leaf) for id, leaf in cursor.fetchall()}


def everything() -> dict[str, Any]:
    log = Log.objects.get(pk=TENANT)
    asked = TagQuery(wanted=[[exact_span("kind", "snapshot.read")]])
    return {
        "facts": sorted((fact.pk, fact.text, fact.outcome, bytes(fact.leaf_hash)) for fact in Fact.objects.all()),
        "leaves": list(reader.iter_leaves(TENANT, 0, log.size)),
        "found": [fact.text for fact in find_by_tags(asked, tenant_id=TENANT, size=50).rows],
        "wrong": list(verify_whole(log)),
        "size": check_log(TENANT),
    }


def test_all_goes_on_when_the_leaves_of_a_month_have_left(store: FolderStore) -> None:
    archive(store)
    index_tenant(TENANT)
    before, rows = everything(), stored()

    (dropped,) = drops.drop_archived_months(store)
    after, left = everything(), stored()

    assert (dropped.table, dropped.leaves) == (FIRST, 512)
    assert dropped.after < dropped.before
    assert after == before
    assert after["wrong"] == []
    empty = [id for id, leaf in left.items() if not leaf]
    assert len(empty) == 512
    assert {id: leaf for id, leaf in left.items() if leaf} == {id: rows[id] for id in rows if id not in set(empty)}
    with connection.cursor() as cursor:
        assert list_partition_faults(cursor) == []
    assert list(drops.drop_archived_months(store)) == []
    forget_index(TENANT)
    index_tenant(TENANT)
    assert everything() == before


def test_a_fact_is_proved_whose_leaf_is_in_the_archive_alone(store: FolderStore, tmp_path: Path) -> None:
    archive(store)
    list(drops.drop_archived_months(store))
    fact = Fact.objects.get(seal__tenant_id=TENANT, seal__leaf_index=300)

    proof = InclusionProof.parse(reader.build_inclusion_proof(fact))
    head = notes.open_checkpoint(proof.note, reader.list_vkeys(reader.load_origin(TENANT)))

    merkle.verify_inclusion(merkle.leaf_hash(bytes(fact.leaf)), 300, head.size, proof.path, head.root)
    assert fact.content["kind"] == "snapshot.read"


def test_what_the_archive_does_not_give_is_unavailable_to_readers_and_missing_to_the_verifier(
    store: FolderStore, tmp_path: Path
) -> None:
    archive(store)
    list(drops.drop_archived_months(store))
    (tmp_path / log_name(TENANT) / "tile/entries/001").rename(tmp_path / "away")

    for index, there in ((100, True), (300, False), (550, True)):
        fact = Fact.objects.get(seal__tenant_id=TENANT, seal__leaf_index=index)
        if there:
            assert fact.content["tenant"] == encode("ten", TENANT)
        else:
            with pytest.raises(ArchivedFactUnavailable):
                _ = fact.text
    wrong = list(verify_whole(Log.objects.get(pk=TENANT)))  # it answers: what it has no more is lost
    assert {each.code for each in wrong} == {FindingCode.FACT_MISSING}
    assert [each.index for each in wrong] == list(range(256, 512))


def test_one_flipped_byte_of_a_dropped_leaf_is_found(store: FolderStore, tmp_path: Path) -> None:
    archive(store)
    list(drops.drop_archived_months(store))
    bundle = tmp_path / log_name(TENANT) / "tile/entries/001"
    data = bundle.read_bytes()
    at = data.index(b"snapshot.read", 40_000)
    bundle.write_bytes(data[:at] + b"Snapshot.read" + data[at + 13 :])

    found = {each.code for each in verify_whole(Log.objects.get(pk=TENANT))}

    assert {FindingCode.FACT_HASH, FindingCode.LEAF_CHANGED} <= found


class WatchingStore(FolderStore):
    """Notes in what state the connection is while the archive is asked."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.states: list[TransactionStatus] = []
        self.held: list[str] = []  # cursors, for which the database has put a copy of all of their rows aside

    def read(self, name: str) -> bytes | None:
        self.states.append(connection.connection.info.transaction_status)
        with connection.cursor() as cursor:
            cursor.execute("SELECT statement FROM pg_cursors")
            self.held += [statement for (statement,) in cursor.fetchall()]
        return super().read(name)


@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_no_transaction_is_open_and_no_copy_held_while_the_archive_is_asked(
    store: FolderStore, tmp_path: Path, tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drops, "_TILES_AT_ONCE", tiles)
    archive(store)
    watching = WatchingStore(tmp_path)

    (dropped,) = drops.drop_archived_months(watching)

    assert dropped.leaves == 512
    assert len(watching.states) >= 3  # where the archive ends, and the two bundles
    assert set(watching.states) == {TransactionStatus.IDLE}
    assert watching.held == []


@pytest.mark.parametrize("place", ["drop.checked", "drop.before_commit"])
def test_a_run_that_was_cut_short_is_made_again(
    store: FolderStore, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(store)
    before = stored()

    def die(at: str) -> None:
        if at == place:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(drops, "inject_fault", die)
        list(drops.drop_archived_months(store))
    between = stored()
    (dropped,) = drops.drop_archived_months(store)

    assert (between, dropped.leaves) == (before, 512)


def test_nothing_leaves_that_nobody_outside_has_seen(store: FolderStore) -> None:
    archive(store, seen=False)
    assert list(drops.drop_archived_months(store)) == []

    archive(store)
    Anchor.objects.update(refused_at=timezone.now())
    assert list(drops.drop_archived_months(store)) == []


def test_nothing_leaves_while_one_refuses_though_another_agrees(store: FolderStore, settings: Any) -> None:
    archive(store)
    settings.TOOLHUB_ANCHOR_GIT = "somewhere"
    Anchor.objects.create(
        name="git", kind=AnchorKind.GIT, size=1, next_attempt_at=timezone.now(), refused_at=timezone.now()
    )

    assert list(drops.drop_archived_months(store)) == []
    said = io.StringIO()
    call_command("archive", "--drop", stdout=said)
    assert said.getvalue().startswith(
        "Nothing to drop while anybody outside has seen another history than the hub has: git. "
    )


def test_a_drop_of_one_log_is_refused() -> None:
    with pytest.raises(CommandError, match="Leave out --log"):
        call_command("archive", "--drop", "--log", "hub")


def test_nobody_has_seen_it_whom_the_settings_do_not_name_any_more(store: FolderStore, settings: Any) -> None:
    archive(store)
    settings.TOOLHUB_ANCHOR_FILE = ""

    assert list(drops.drop_archived_months(store)) == []


def test_nothing_leaves_that_lies_in_the_archive_otherwise(store: FolderStore, tmp_path: Path) -> None:
    archive(store)
    bundle = tmp_path / log_name(TENANT) / "tile/entries/001"
    data = bytearray(bundle.read_bytes())
    data[5_000] ^= 1
    bundle.write_bytes(data)
    before = stored()

    with pytest.raises(ArchiveDiffers, match="tile/entries/001 does not have the leaves"):
        list(drops.drop_archived_months(store))

    assert stored() == before


def change_leaf(index: int) -> None:
    """In its row. Its hash beside it is still the one that was sealed."""
    changed = Fact.objects.get(seal__tenant_id=TENANT, seal__leaf_index=index)
    leaf = bytes(changed.leaf).replace(b"snapshot.read", b"Snapshot.read")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE evidence_fact DISABLE TRIGGER toolhub_no_update")
        cursor.execute("UPDATE evidence_fact SET leaf = %s WHERE id = %s", [leaf, changed.pk])
        cursor.execute("ALTER TABLE evidence_fact ENABLE ALWAYS TRIGGER toolhub_no_update")


def test_a_leaf_that_somebody_has_changed_in_its_row_keeps_the_month(store: FolderStore) -> None:
    archive(store)
    change_leaf(300)
    before = stored()

    with pytest.raises(CommandError, match=f"Leaf 300 of .* was changed in {FIRST}"):
        call_command("archive", "--drop")

    assert stored() == before
    assert FindingCode.FACT_HASH in {each.code for each in verify_whole(Log.objects.get(pk=TENANT))}


def test_a_month_that_stays_keeps_no_other_from_its_turn(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with connection.cursor() as cursor:
        ends = {month.table: month.ends for month in partitions.list_months(cursor)}
    of_first = ends[FIRST]
    assert of_first is not None
    later = partitions.following_month(of_first)
    look_into_old_calls(299, monkeypatch, later - timedelta(days=3))
    archive(store)
    # A leaf of it, and how many others of it leave: of 900 leaves three bundles are full.
    leaves = {
        table: (300, 599) if table == FIRST else (700, 168)
        for table, end in ends.items()
        if end in (ends[FIRST], later)
    }
    (stays, (index, _)), (goes, (_, dropped)) = leaves.items()  # in the order of their turns
    change_leaf(index)
    before, said = stored(), io.StringIO()

    with pytest.raises(CommandError, match=rf"^Leaf {index} of [^\n]* was changed in {stays}[^\n]*$"):
        call_command("archive", "--drop", stdout=said)

    assert said.getvalue().startswith(f"{goes}: {dropped} leaves; ")
    assert len([id for id, leaf in stored().items() if leaf != before[id]]) == dropped


def test_a_leaf_that_is_changed_while_the_month_is_checked_is_not_dropped(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(store)
    drop = drops._drop

    def change_and_drop(*asked: Any) -> drops.DroppedMonth:
        change_leaf(300)
        return drop(*asked)

    with monkeypatch.context() as patched, pytest.raises(ArchiveDiffers, match=f"changed facts in {FIRST} while"):
        patched.setattr(drops, "_drop", change_and_drop)
        list(drops.drop_archived_months(store))

    assert all(stored().values())
    with pytest.raises(ArchiveDiffers, match=f"Leaf 300 of .* was changed in {FIRST}"):
        list(drops.drop_archived_months(store))


def test_a_fact_that_comes_late_into_a_dropped_month_keeps_its_leaf(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(store)
    list(drops.drop_archived_months(store))

    look_into_old_calls(1, monkeypatch)
    seal_everything()

    assert check_log(TENANT) == 602
    assert list(verify_whole(Log.objects.get(pk=TENANT))) == []


def test_a_drop_gives_way_to_who_reads_and_to_late_facts(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for what takes long, and the copy is made once."""
    archive(store)
    said, rests = list[str](), list[float]()

    def write_late_fact() -> None:
        look_into_old_calls(1, monkeypatch)
        connections.close_all()

    def listen(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        said.append(sql)
        return execute(sql, params, many, context)

    with reading() as reader, ThreadPoolExecutor(1) as beside:

        def rest(seconds: float) -> None:
            rests.append(seconds)
            begin_meanwhile()
            beside.submit(write_late_fact).result(timeout=60)
            if len(rests) == 2:
                reader.rollback()

        monkeypatch.setattr(partitions, "sleep", rest)
        with connection.execute_wrapper(listen):
            (dropped,) = drops.drop_archived_months(store)

    seal_everything()
    assert (len(rests), dropped.leaves, check_log(TENANT)) == (2, 512, 604)
    assert list(verify_whole(Log.objects.get(pk=TENANT))) == []
    assert sum(sql.startswith("CREATE TABLE") for sql in said) == 1
    exchanged = said[max(at for at, sql in enumerate(said) if "DETACH" in sql) :]
    assert not [sql for sql in exchanged if sql.startswith(("CREATE", "INSERT", "ANALYZE")) or "count(" in sql]


def test_a_drop_that_never_gets_its_turn_says_so(store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(store)
    before = stored()
    monkeypatch.setattr(partitions, "TRIES", 1)
    monkeypatch.setattr(partitions, "sleep", lambda _: None)

    with reading(), pytest.raises(CommandError, match="in one long transaction"):
        call_command("archive", "--drop")

    assert stored() == before


def test_a_month_stays_its_owners_whoever_drops(
    store: FolderStore, login: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive(store)
    user = psycopg.conninfo.conninfo_to_dict(login)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER ROLE {user['user']} SUPERUSER")
    connection.close()
    with monkeypatch.context() as patched:
        patched.setitem(connection.settings_dict, "USER", user["user"])
        patched.setitem(connection.settings_dict, "PASSWORD", user["password"])
        try:
            (dropped,) = drops.drop_archived_months(store)
        finally:
            connection.close()

    with connection.cursor() as cursor:
        assert (dropped.leaves, list_partition_faults(cursor)) == (512, [])


def test_the_command_drops_and_says_what(store: FolderStore, settings: Any, tmp_path: Path) -> None:
    settings.TOOLHUB_DATA_DIR = tmp_path
    archive(store)
    said = io.StringIO()

    blocks = blocks_of(ROOT / "docs" / "how-to" / "archive-the-logs.md")
    (words,) = (block.text.split() for block in blocks if block.elsewhere and __file__.endswith(block.elsewhere))

    call_command(*words[1:], stdout=said)
    call_command(*words[1:], stdout=said)

    first, second = said.getvalue().splitlines()
    assert first.startswith(f"{FIRST}: 512 leaves; ")
    assert second.startswith("Nothing to drop. ")
    write_facts(TENANT, 1)


def test_who_does_not_own_the_tables_drops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolhub.management.commands.archive.may_alter_tables", lambda _: "")

    with pytest.raises(CommandError, match="Only who owns the tables"):
        call_command("archive", "--drop")
