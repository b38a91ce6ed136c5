from __future__ import annotations

import shutil
import threading
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.boxd.caches import FolderCache, FolderNotOwned, NotTaken, PackageCache
from invocations.sandbox.wire.contract import compute_digest
from invocations.sandbox.wire.folder_archive import measure_folder, write_archive

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> FolderCache:
    found = FolderCache(tmp_path / "cache", MIB, clock=clock)
    found.start()
    return found


def put(cache: FolderCache, place: Path, name: str, content: bytes, digest: str = "") -> str:
    folder = place / name
    folder.mkdir()
    (folder / "file").write_bytes(content)
    pieces: list[bytes] = []
    found, size = measure_folder(folder)
    write_archive(folder, pieces.append)
    cache.put(digest or found, size, pieces)
    return found


def list_folders(cache: FolderCache) -> list[str]:
    return [path.name for path in cache.root.iterdir() if path.is_dir()]


def test_packages_that_were_not_used_for_longest_go_first() -> None:
    cache = PackageCache(250)
    packages = [bytes([number]) * 100 for number in range(3)]
    first, second, third = map(compute_digest, packages)
    cache.put(first, packages[0])
    cache.put(second, packages[1])
    cache.get(first)
    cache.put(third, packages[2])

    assert [cache.get(each) is not None for each in (first, second, third)] == [True, False, True]


def test_bytes_of_another_digest_are_not_kept(cache: FolderCache, tmp_path: Path) -> None:
    other = compute_digest(b"other")

    with pytest.raises(NotTaken, match="not those of sha256"):
        PackageCache(MIB).put(other, b"these")
    with pytest.raises(NotTaken, match="not those of sha256"):
        put(cache, tmp_path, "a", b"x", other)

    assert cache.find(other) is None
    assert list_folders(cache) == []


def test_a_folder_is_found_whole_and_nobody_can_write_there(cache: FolderCache, tmp_path: Path) -> None:
    digest = put(cache, tmp_path, "a", b"content")

    found = cache.find(digest)

    assert found is not None
    assert (found / "file").read_bytes() == b"content"
    assert found.stat().st_mode & 0o777 == 0o555
    assert (found / "file").stat().st_mode & 0o777 == 0o444


def test_a_folder_put_twice_is_the_same(cache: FolderCache, tmp_path: Path) -> None:
    assert put(cache, tmp_path, "a", b"content") == put(cache, tmp_path, "b", b"content")
    assert len(list_folders(cache)) == 1


def test_a_folder_that_may_be_mounted_stays_and_one_unused_for_an_hour_goes(
    cache: FolderCache, clock: Clock, tmp_path: Path
) -> None:
    first = put(cache, tmp_path, "a", b"a" * (MIB // 2))
    assert cache.find(first) is not None

    with pytest.raises(NotTaken, match="TOOLHUB_BOXD_CACHE_MB"):
        put(cache, tmp_path, "b", b"b" * (MIB // 2))
    clock.now += 3601
    second = put(cache, tmp_path, "c", b"c" * (MIB // 2))

    assert cache.find(first) is None
    assert cache.find(second) is not None


@pytest.mark.req("OPS-1")
def test_folders_are_found_while_room_is_made_for_another(
    cache: FolderCache, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = put(cache, tmp_path, "a", b"a" * (MIB // 4))
    clock.now += 3601
    kept = put(cache, tmp_path, "b", b"b" * (MIB // 4))
    assert cache.find(kept) is not None
    found: list[Path | None] = []
    remove = shutil.rmtree

    def look_meanwhile(folder: Path, **options: Any) -> None:
        if not found:
            call = threading.Thread(target=lambda: found.extend([cache.find(kept), cache.find(old)]), daemon=True)
            call.start()
            call.join(60)
            assert not call.is_alive(), "The call waits for the folder's removal."
        remove(folder, **options)

    monkeypatch.setattr("invocations.sandbox.boxd.caches.shutil.rmtree", look_meanwhile)
    new = put(cache, tmp_path, "c", b"c" * (MIB // 2))

    assert found == [cache.root / kept.removeprefix("sha256:"), None]
    assert cache.find(new) is not None


def test_what_is_there_counts_for_the_next_process(cache: FolderCache, tmp_path: Path) -> None:
    digest = put(cache, tmp_path, "a", b"a" * (MIB // 2))

    following = FolderCache(cache.root, MIB)
    following.start()

    assert following.find(digest) is not None
    with pytest.raises(NotTaken, match="TOOLHUB_BOXD_CACHE_MB"):
        put(following, tmp_path, "b", b"b" * (MIB // 2))


def test_what_an_earlier_process_left_half_is_thrown_away(cache: FolderCache) -> None:
    (cache.root / "1234.part").mkdir()

    FolderCache(cache.root, MIB).start()

    assert list_folders(cache) == []


@pytest.mark.req("OPS-1")
def test_a_folder_where_a_worker_builds_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "deps" / "py311-numpy").mkdir(parents=True)

    with pytest.raises(FolderNotOwned, match="Set TOOLHUB_BOXD_DEPENDENCY_DIR to an empty folder"):
        FolderCache(tmp_path / "deps", MIB).start()

    assert [path.name for path in (tmp_path / "deps").iterdir()] == ["py311-numpy"]
