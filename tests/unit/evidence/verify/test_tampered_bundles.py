"""Tampered bundles: is every change to a bundle found, whatever it is packed in?"""

from __future__ import annotations

import random
import struct
import zipfile
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from evidence.verify import archive, bundle
from evidence.verify.bundle_verifier import verify_bundle
from tests.unit.evidence.verify.bundles import Log, facts, files_of, unpack, write
from tests.unit.evidence.verify.trees import SIGNER

if TYPE_CHECKING:
    from pathlib import Path

LOG = Log(facts(40))
KEY = str(SIGNER.key)
CHANGES = 500  # of the thousand that the hub's tamper test makes; the rest are made to its database


def tampered(files: dict[str, bytes], chance: random.Random) -> tuple[str, dict[str, bytes]]:
    """The files of a bundle with one random change to them: what was done, and what came of it."""
    files = dict(files)
    name = chance.choice(sorted(files))
    data = files[name]
    way = chance.choice(
        ["change", "delete file", "insert file", "truncate", "reorder", "delete line", "insert line", "exchange files"]
    )
    lines = data.splitlines(keepends=True)
    match way:
        case "change":
            at = chance.randrange(len(data))
            files[name] = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        case "delete file":
            del files[name]
        case "insert file":
            files[bundle.facts_name(chance.randrange(100))] = data
        case "truncate":
            files[name] = data[: chance.randrange(len(data))]
        case "reorder":
            chance.shuffle(lines)
            files[name] = b"".join(lines)
        case "delete line":
            del lines[chance.randrange(len(lines))]
            files[name] = b"".join(lines)
        case "insert line":
            lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
            files[name] = b"".join(lines)
        case "exchange files":
            other = chance.choice(sorted(files))
            files[name], files[other] = files[other], files[name]
    return way, files


def put(folder: Path, files: dict[str, bytes]) -> Path:
    (folder / "facts").mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_every_one_of_many_random_changes_to_a_bundle_is_found(tmp_path: Path) -> None:
    folder = unpack(write(tmp_path / "b.zip", LOG, files_of(LOG, older=17)), tmp_path / "good")
    good = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert verify_bundle(folder, keys=[KEY]).ok
    chance, done, missed = random.Random(6), Counter[str](), []
    while done.total() < CHANGES:
        way, files = tampered(good, chance)
        if files == good:
            continue
        done[way] += 1
        if verify_bundle(put(tmp_path / str(done.total()), files), keys=[KEY]).ok:
            missed.append((way, [name for name in good | files if good.get(name) != files.get(name)]))

    assert missed == []
    assert len(done) == 8


def test_every_cut_and_every_flipped_byte_of_a_zip_file_is_refused_or_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "b.zip", LOG, files_of(LOG))
    good, chance = path.read_bytes(), random.Random(7)
    for _ in range(200):
        path.write_bytes(good[: chance.randrange(len(good))])
        assert not verify_bundle(path).ok
    for _ in range(200):
        raw = bytearray(good)
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        path.write_bytes(raw)
        report = verify_bundle(path)
        assert not report.ok or report.good == len(LOG.leaves)


def zipped(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members:
            packed.writestr(zipfile.ZipInfo(name), data)
    return path


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/etc/passwd",
        "facts/../../evil",
        "facts/1.jsonl",
        "evil",
        "facts\\000000000000.jsonl",
        "facts/000000000000.jsonl/x",
    ],
)
def test_a_name_that_is_no_file_of_a_bundle_leads_nowhere(tmp_path: Path, name: str) -> None:
    (found,) = verify_bundle(zipped(tmp_path / "b.zip", (name, b"x"))).findings

    assert "which is no file of a bundle" in str(found)
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    folder = unpack(write(tmp_path / "b.zip", LOG, files_of(LOG)), tmp_path / "folder")
    (folder / "vkeys").rename(tmp_path / "elsewhere")
    (folder / "vkeys").symlink_to(tmp_path / "elsewhere")

    assert "'vkeys', which is no file of a bundle" in str(verify_bundle(folder).findings[0])


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped(tmp_path / "b.zip", ("vkeys", bytes(archive.MAX_SMALL_BYTES + 1)))
    assert str(verify_bundle(bomb).findings[0]) == "vkeys is larger than 16 MiB."

    monkeypatch.setattr(archive, "MAX_LINE_BYTES", 1 << 20)
    line = write(tmp_path / "c.zip", LOG, files_of(LOG, stop=0) | {bundle.facts_name(0): b"[" * (1 << 21)})
    assert "A line of facts/000000000000.jsonl is longer than 1 MiB." in map(str, verify_bundle(line).findings)

    monkeypatch.setattr(archive, "MAX_FACTS_BYTES", 1 << 20)
    assert "more than 50000 files or" in str(verify_bundle(line).findings[0])


def test_a_directory_of_millions_of_files_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [bundle.BundleEntry(bundle.facts_name(n), "", 0, 0, 0, 0) for n in range(50)]
    (tmp_path / "b.zip").write_bytes(bundle.zip_end(many))
    monkeypatch.setattr(archive, "MAX_DIRECTORY_BYTES", 49 * 71)
    monkeypatch.setattr(zipfile, "ZipFile", lambda _: pytest.fail("It was read."))
    assert "has more than 50000 files" in str(verify_bundle(tmp_path / "b.zip").findings[0])

    end = b"PK\6\7" + bytes(16) + bundle.zip_end([])  # says that the size stands elsewhere, in 64 bits
    (tmp_path / "c.zip").write_bytes(end)
    assert "of the kind for more than 4 GiB" in str(verify_bundle(tmp_path / "c.zip").findings[0])


def test_a_zip_file_that_lies_about_sizes_or_names_a_file_twice_is_refused(tmp_path: Path) -> None:
    raw, entry = bundle.zip_entry(bundle.VKEYS, b"x" * 100, offset=0)
    path = tmp_path / "b.zip"
    path.write_bytes(raw + bundle.zip_end([entry, entry]))
    assert "holds 'vkeys' twice" in str(verify_bundle(path).findings[0])

    end = bytearray(bundle.zip_end([entry]))
    end[24:28] = struct.pack("<I", 50)  # the directory says 50 bytes, there are 100
    path.write_bytes(raw + end)
    assert "vkeys cannot be read from the zip file: it was changed or cut." in str(verify_bundle(path).findings[0])


def test_what_is_no_bundle_at_all_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_bytes(b"PK\3\4 nothing")
    assert "neither a folder nor a zip file" in str(verify_bundle(tmp_path / "b.zip").findings[0])
    (tmp_path / "empty").mkdir()
    assert str(verify_bundle(tmp_path / "empty").findings[0]) == "The bundle has no file vkeys."
