"""Archives: is the log in the archive whole, can anybody verify it from there alone, and is what does not fit found?"""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db.models import QuerySet
from pymerkle import InmemoryTree

from evidence.archives.object_stores import MAX_BYTES, OF_READERS, ArchiveUnavailable, FolderStore, S3Store, open_store
from evidence.archives.services import ArchiveDiffers, archive_log, list_archived_logs
from evidence.archives.turns import take_turn_at_archive
from evidence.kinds import Kind
from evidence.log import reader
from evidence.log.origins import log_name
from evidence.models import GLOBAL_LOG, Checkpoint, Fact, Log, Seal, Tile
from evidence.verify import merkle, notes
from evidence.verify.command import main as verify
from evidence.verify.problems import MalformedEvidence
from evidence.verify.proofs import InclusionProof
from evidence.verify.tiles import unpack_entries
from kernel.database.tenancy import NO_TENANT
from kernel.ids import encode, new_id
from tests.support.append_only_triggers import rewritable
from tests.support.doc_blocks import ROOT, blocks_of
from tests.support.evidence_logs import seal_everything, signing_with, write_facts
from tests.support.s3_storage import BUCKET, S3Storage, run_s3_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evidence.archives.object_stores import ObjectStore

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = ROOT / "docs" / "how-to" / "archive-the-logs.md"
TENANT = new_id()
NAME = log_name(TENANT)


@pytest.fixture(autouse=True)
def keys() -> Iterator[Any]:
    with signing_with() as found:
        yield found


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Storage]:
    with run_s3_storage(monkeypatch) as found:
        yield found


def grow(count: int) -> Log:
    write_facts(TENANT, count)
    seal_everything()
    return Log.objects.get(pk=TENANT)


def key_of(log: Log) -> list[str]:
    return [word for vkey in reader.list_vkeys(log.origin) for word in ("--key", vkey)]


class BrokenStore(FolderStore):
    """Fails at one of its writes."""

    def __init__(self, folder: Path, *, fails_at: int) -> None:
        super().__init__(folder)
        self._left = fails_at

    def write_new(self, name: str, data: bytes, *, compress: bool = False) -> None:
        self._left -= 1
        if not self._left:
            raise ArchiveUnavailable("The disk is full.")
        super().write_new(name, data, compress=compress)


def test_the_bucket_alone_is_a_log_that_verifies(
    s3: S3Storage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = grow(600)
    done = archive_log(log, S3Store(BUCKET, "hub/", endpoint=s3.endpoint))

    s3.copy_to(tmp_path)
    status = verify([str(tmp_path / "hub" / NAME), "--json", *key_of(log)])

    assert done is not None
    assert (done.start, done.stop) == (0, 600)
    report = json.loads(capsys.readouterr().out)
    assert (status, report["size"], report["facts"]) == (0, 600, 600)
    packed = sum(len(data) for name, data in s3.read_all().items() if "/entries/" in name)
    assert packed < sum(len(fact.leaf) for fact in Fact.objects.filter(tenant_id=TENANT)) / 3


def test_a_foreign_tree_over_the_archived_leaves_has_the_signed_root(tmp_path: Path) -> None:
    log = grow(300)
    archive_log(log, FolderStore(tmp_path))

    tree = InmemoryTree(algorithm="sha256")
    for bundle in ("000", "001.p/44"):
        for leaf in unpack_entries((tmp_path / NAME / "tile/entries" / bundle).read_bytes()):
            tree.append_entry(leaf)
    head = notes.open_checkpoint((tmp_path / NAME / "checkpoint").read_text(), reader.list_vkeys(log.origin))

    assert (tree.get_size(), tree.get_root()) == (head.size, head.root)


def test_the_next_run_goes_on_and_the_log_says_what_was_archived(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    first = archive_log(grow(300), store)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("tile/**/*") if path.is_file()}

    second = archive_log(grow(700), store)
    third = archive_log(grow(0), store)

    assert first is not None
    assert second is not None
    assert (first.stop, second.start, second.stop, third) == (300, 300, 1000, None)
    facts = list(Fact.objects.filter(kind=Kind.LOG_ARCHIVED).order_by("id"))
    said = [json.loads(bytes(fact.leaf)) for fact in facts]
    assert {(each["tenant"], each["subject"]) for each in said} == {(encode("ten", NO_TENANT), f"log:{NAME}")}
    assert [(each["data"]["start"], each["data"]["stop"], each["data"]["digest"]) for each in said] == [
        (0, 300, first.digest),
        (300, 1000, second.digest),
    ]
    assert all(path.stat().st_mtime_ns == at for path, at in before.items())  # nothing was written twice
    assert verify([str(tmp_path / NAME), *key_of(Log.objects.get(pk=TENANT))]) == 0


def test_a_hub_in_which_nothing_happens_archives_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    archive_log(grow(3), store)  # which the hub's own log says
    seal_everything()
    hub = Log.objects.get(pk=NO_TENANT)

    runs = [archive_log(hub, store)]  # the keys of the log are facts of it, too
    for _ in range(2):
        seal_everything()
        runs.append(archive_log(Log.objects.get(pk=NO_TENANT), store))

    assert runs[0] is not None
    assert runs[1:] == [None, None]


@pytest.mark.parametrize("fails_at", [1, 3, 6])
def test_a_run_that_was_cut_short_is_made_again(tmp_path: Path, fails_at: int) -> None:
    log = grow(600)
    with pytest.raises(ArchiveUnavailable):
        archive_log(log, BrokenStore(tmp_path, fails_at=fails_at))
    assert not (tmp_path / NAME / "checkpoint").exists()

    archive_log(log, FolderStore(tmp_path))

    assert verify([str(tmp_path / NAME), *key_of(log)]) == 0
    assert Fact.objects.filter(kind=Kind.LOG_ARCHIVED).count() == 1


def test_one_flipped_byte_of_the_archive_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = grow(300)
    archive_log(log, FolderStore(tmp_path))
    bundle = tmp_path / NAME / "tile/entries/000"
    data = bytearray(bundle.read_bytes())
    data[5_000] ^= 1
    bundle.write_bytes(data)

    assert verify([str(tmp_path / NAME), *key_of(log)]) == 2
    assert "Its bytes do not have the hash" in capsys.readouterr().out


def test_what_lies_there_already_and_is_another_is_not_taken_for_the_log(tmp_path: Path) -> None:
    log = grow(10)
    (tmp_path / NAME / "tile/entries").mkdir(parents=True)
    (tmp_path / NAME / "tile/entries/000.p").mkdir()
    (tmp_path / NAME / "tile/entries/000.p/10").write_bytes(b"other")

    with pytest.raises(ArchiveDiffers, match=f"{NAME}/tile/entries/000.p/10 lies in the archive otherwise"):
        archive_log(log, FolderStore(tmp_path))

    assert not (tmp_path / NAME / "checkpoint").exists()
    assert not Fact.objects.filter(kind=Kind.LOG_ARCHIVED).exists()


def change_leaf() -> None:
    fact = Fact.objects.filter(tenant_id=TENANT).first()
    assert fact is not None
    with rewritable():
        QuerySet(Fact).filter(pk=fact.pk).update(leaf=bytes(fact.leaf).replace(b"paused", b"Paused"))


def lose_fact() -> None:
    with rewritable():
        QuerySet(Seal).filter(tenant_id=TENANT, leaf_index=4).delete()


def change_tile() -> None:
    tile = Tile.objects.get(tenant_id=TENANT, level=0, n=0)
    with rewritable():
        Tile.objects.filter(tenant_id=TENANT, level=0, n=0).update(hashes=bytes(32) + bytes(tile.hashes)[32:])


def sign_otherwise() -> None:
    head = Checkpoint.objects.get(tenant_id=TENANT)
    with rewritable():
        Checkpoint.objects.filter(pk=head.pk).update(note=head.note.replace("\n10\n", "\n9\n"))


@pytest.mark.parametrize("damage", [change_leaf, lose_fact, change_tile, sign_otherwise])
def test_a_log_that_was_changed_is_not_archived(tmp_path: Path, damage: Callable[[], None]) -> None:
    log = grow(10)
    damage()

    with pytest.raises(ArchiveDiffers):
        archive_log(log, FolderStore(tmp_path))

    assert not list(tmp_path.iterdir())  # where it would stay
    assert not Fact.objects.filter(kind=Kind.LOG_ARCHIVED).exists()


def test_a_checkpoint_goes_to_the_archive_once_the_global_log_has_it(tmp_path: Path) -> None:
    log = grow(10)
    archive_log(log, FolderStore(tmp_path))
    grow(10)
    with rewritable():
        Checkpoint.objects.filter(tenant_id=TENANT, size=20).update(global_index=None)

    assert archive_log(log, FolderStore(tmp_path)) is None

    proof, head = ((tmp_path / NAME / name).read_text() for name in ("global.tlog-proof", "checkpoint"))
    found = InclusionProof.parse(proof)
    anchor = notes.open_checkpoint(found.note, reader.list_vkeys(reader.load_origin(GLOBAL_LOG)))
    leaf = merkle.leaf_hash(notes.split_note(head)[0].encode())
    merkle.verify_inclusion(leaf, found.index, anchor.size, found.path, anchor.root)


def test_what_lies_there_and_is_no_checkpoint_is_said(tmp_path: Path) -> None:
    log = grow(10)
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / "checkpoint").write_bytes(b"\xff\xfe")

    with pytest.raises(ArchiveDiffers, match="is not one that the hub has signed"):
        archive_log(log, FolderStore(tmp_path))


def test_one_run_is_at_it_at_a_time(settings: Any, tmp_path: Path) -> None:
    grow(1)
    settings.TOOLHUB_ARCHIVE_URL, settings.TOOLHUB_DATA_DIR = f"file://{tmp_path}/kept", tmp_path
    with take_turn_at_archive(), pytest.raises(CommandError, match="Another run is at it"):
        call_command("archive")

    assert not (tmp_path / "kept").exists()
    call_command("archive", stdout=io.StringIO())
    assert (tmp_path / "kept" / NAME / "checkpoint").is_file()


@pytest.mark.parametrize("also_tiles", [False, True])
def test_a_hub_that_was_put_back_does_not_continue_its_archive(tmp_path: Path, *, also_tiles: bool) -> None:
    store = FolderStore(tmp_path)
    archive_log(grow(10), store)
    log = grow(10)
    archive_log(log, store)
    older = Checkpoint.objects.filter(tenant_id=TENANT).order_by("size")[0]
    with rewritable():
        Checkpoint.objects.filter(tenant_id=TENANT, size__gt=older.size).delete()
        if also_tiles:
            tile = Tile.objects.get(tenant_id=TENANT, level=0)
            Tile.objects.filter(tenant_id=TENANT).update(hashes=bytes(tile.hashes)[: 10 * 32])

    with pytest.raises(ArchiveDiffers, match="does not continue the 20 leaves"):
        archive_log(log, store)


def test_the_command_archives_all_logs_and_says_which_it_could_not(
    s3: S3Storage, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(5)
    settings.TOOLHUB_ARCHIVE_URL, settings.TOOLHUB_ARCHIVE_ENDPOINT = f"s3://{BUCKET}/acme", s3.endpoint
    said = io.StringIO()
    call_command("archive", stdout=said)

    assert f"leaves 0 to 4, 2 objects, verified in s3://{BUCKET}/acme" in said.getvalue()
    assert {f"acme/{log_name(log.pk)}/checkpoint" for log in list_archived_logs()} <= s3.read_all().keys()
    assert f"acme/{NAME}/global.tlog-proof" in s3.read_all()

    grow(1)
    settings.TOOLHUB_ARCHIVE_URL = "s3://nowhere/acme"
    complaints = io.StringIO()
    with pytest.raises(CommandError, match="logs were not archived"):
        call_command("archive", stdout=said, stderr=complaints)
    assert "NoSuchBucket" in complaints.getvalue()

    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}/kept"
    call_command("archive", "--log", NAME, stdout=said)
    assert (tmp_path / "kept" / NAME / "checkpoint").is_file()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--log", "nonsense"], "no name of a log"), (["--log", log_name(new_id())], "There is no log")],
)
def test_a_name_of_no_log_is_refused(settings: Any, tmp_path: Path, words: list[str], sentence: str) -> None:
    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}"

    with pytest.raises(CommandError, match=sentence):
        call_command("archive", *words)


def test_what_the_page_types_archives_and_verifies(settings: Any, tmp_path: Path) -> None:
    """Its folder and its key are those of this test."""
    blocks = [block for block in blocks_of(PAGE) if block.elsewhere and __file__.endswith(block.elsewhere)]
    archive, check = (block.text.split() for block in blocks)
    log = grow(5)
    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}"
    key = tmp_path / "log.vkey"
    key.write_text("\n".join(reader.list_vkeys(log.origin)))

    call_command(*archive[1:], stdout=io.StringIO())
    said = {"./ten_01…": str(tmp_path / NAME), "log.vkey": str(key)}
    status = verify([said.get(word, word) for word in check[1:]])

    assert (archive[0], check[0], status) == ("manage.py", "toolhub-verify", 0)
    assert said.keys() <= set(check)


def test_without_an_archive_the_command_says_which_setting_is_missing() -> None:
    with pytest.raises(CommandError, match="Set TOOLHUB_ARCHIVE_URL"):
        call_command("archive")


@pytest.mark.parametrize("opened", ["s3", "folder"])
def test_an_object_stays_as_it_was_first_written(s3: S3Storage, tmp_path: Path, opened: str) -> None:
    url = f"s3://{BUCKET}" if opened == "s3" else f"file://{tmp_path}"
    store: ObjectStore = open_store(url, endpoint=s3.endpoint)
    store.write_new("a/b", b"first", compress=True)
    store.write_new("a/b", b"second", compress=True)
    store.replace("head", b"1")
    store.replace("head", b"2")

    assert (store.read("a/b"), store.read("head"), store.read("a/none")) == (b"first", b"2", None)


@pytest.mark.parametrize(
    ("data", "encoding", "sentence"),
    [
        (gzip.compress(bytes(10 * MAX_BYTES)), "gzip", "is longer than any object"),
        (gzip.compress(b"leaves") + gzip.compress(bytes(10 * MAX_BYTES)), "gzip", "something stands behind it"),
        (gzip.compress(b"leaves")[:-3], "gzip", "it was cut"),
        (b"leaves", "gzip", "cannot be unpacked"),
        (bytes(MAX_BYTES + 1), "", "is longer than any object"),
    ],
)
def test_what_the_hub_cannot_have_written_is_not_unpacked(
    s3: S3Storage, data: bytes, encoding: str, sentence: str
) -> None:
    s3.client.put_object(Bucket=BUCKET, Key="a/b", Body=data, ContentEncoding=encoding)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedEvidence, match=sentence):
            S3Store(BUCKET, "", endpoint=s3.endpoint).read("a/b")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 6 * MAX_BYTES


def test_a_file_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(bytes(MAX_BYTES + 1))

    with pytest.raises(MalformedEvidence, match="is longer than any object"):
        FolderStore(tmp_path).read("long")


def test_a_folder_whose_disk_is_not_there_has_no_answer_for_who_reads(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/none"

    assert open_store(url).read("a/b") is None  # a run makes it
    with pytest.raises(ArchiveUnavailable, match="is its disk mounted"):
        open_store(url, patience=OF_READERS).read("a/b")


def test_who_reads_waits_for_seconds_and_a_run_for_longer() -> None:
    times = [
        (config.connect_timeout, config.read_timeout, config.retries["total_max_attempts"])
        for store in (open_store("s3://a", patience=OF_READERS), open_store("s3://a"))
        for config in [store._client.meta.config]  # type: ignore[attr-defined]
    ]

    assert times == [(2, 5, 2), (10, 60, 5)]


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(ArchiveUnavailable, match="cannot be written: Not a directory"):
        FolderStore(tmp_path / "file").write_new("a/b", b"")
