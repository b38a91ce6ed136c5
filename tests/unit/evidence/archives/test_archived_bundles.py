"""Archived bundles: are those of one page read beside each other, and never more of them than may be?"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from evidence.archives.bundles import AT_ONCE, BundlePlace, forget_bundles, get_bundles, read_bundles
from evidence.archives.object_stores import ArchiveUnavailable, FolderStore
from evidence.log.origins import log_name
from evidence.problems import ArchivedFactUnavailable
from evidence.verify.tiles import ENTRIES, TilePath, pack_entries
from kernel.ids import new_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOG, WITHIN_S = new_id(), 10


@pytest.fixture(autouse=True)
def archive(tmp_path: Path, settings: Any) -> Iterator[Path]:
    settings.TOOLHUB_ARCHIVE_URL = f"file://{tmp_path}"
    forget_bundles()
    for n in range(3 * AT_ONCE):
        file = tmp_path / log_name(LOG) / str(TilePath(ENTRIES, n))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(pack_entries([b"leaf %d" % n]))
    yield tmp_path
    forget_bundles()


def places(count: int) -> list[BundlePlace]:
    return [BundlePlace(LOG, n) for n in range(count)]


def test_bundles_of_one_page_are_read_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    met, read = threading.Barrier(AT_ONCE), FolderStore.read

    def read_together(store: FolderStore, name: str) -> bytes | None:
        met.wait(WITHIN_S)  # breaks where the others are not asked for meanwhile
        return read(store, name)

    monkeypatch.setattr(FolderStore, "read", read_together)

    assert read_bundles(places(AT_ONCE)) == {place: [b"leaf %d" % place.n] for place in places(AT_ONCE)}


def test_no_more_are_read_at_once_than_may_be_and_each_of_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, read, now, most, asked = threading.Lock(), FolderStore.read, 0, 0, list[str]()

    def count(store: FolderStore, name: str) -> bytes | None:
        nonlocal now, most
        with lock:
            now, most = now + 1, max(most, now + 1)
            asked.append(name)
        try:
            return read(store, name)
        finally:
            with lock:
                now -= 1

    monkeypatch.setattr(FolderStore, "read", count)

    found = get_bundles([*places(3 * AT_ONCE), *places(5)])

    assert found.keys() == set(places(3 * AT_ONCE))
    assert most <= AT_ONCE
    assert len(asked) == len(set(asked)) == 3 * AT_ONCE
    assert get_bundles(places(3 * AT_ONCE)) == found
    assert len(asked) == 3 * AT_ONCE  # what was read lately is kept


def test_one_that_is_gone_or_cannot_be_had_keeps_no_other_from_being_read(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (archive / log_name(LOG) / str(TilePath(ENTRIES, 1))).unlink()
    read = FolderStore.read

    def fail_at_last(store: FolderStore, name: str) -> bytes | None:
        if name.endswith("002"):
            raise ArchiveUnavailable("timed out")
        return read(store, name)

    assert read_bundles(places(2)) == {places(2)[0]: [b"leaf 0"], places(2)[1]: []}
    monkeypatch.setattr(FolderStore, "read", fail_at_last)

    found = read_bundles([places(3)[2]])
    after = read_bundles(places(1))

    assert [type(each) for each in (*found.values(), *after.values())] == [ArchivedFactUnavailable] * 2  # at once
