"""Capsule attacks: is every capsule that could be understood in two ways refused, by name, before anything of it is used?"""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
import warnings
import zipfile
from typing import Any

import pytest

from tests.support.capsules import capsule, entries_of, shouting, zipped
from unitools.capsules import MAX_CAPSULE_BYTES, CapsuleError, archive, errors, open_capsule


def entry(name: str, mode: int = 0o100644) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = mode << 16
    return info


def with_files(**files: bytes) -> bytes:
    """A good capsule, and what somebody put into it."""
    return archive._written(entries_of(capsule().data) | files)


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../evil.py", errors.PathTraversal),
        ("package/acme_voice/../../evil.py", errors.PathTraversal),
        ("package\\..\\..\\evil.py", errors.PathTraversal),
        ("..", errors.PathTraversal),
        ("/etc/cron.d/evil", errors.AbsoluteName),
        ("\\\\server\\share\\evil", errors.AbsoluteName),
        ("C:/Windows/evil.dll", errors.AbsoluteName),
        ("c:evil", errors.AbsoluteName),
        ("package/./evil.py", errors.UnsafeName),
        ("package//evil.py", errors.UnsafeName),
        ("package/evil.py ", errors.UnsafeName),
        ("package/evil.", errors.UnsafeName),
        ("package/evil.py:stream", errors.UnsafeName),
        ("package\\evil.py", errors.UnsafeName),
        ("package/\x1b[2Jevil.py", errors.UnsafeName),
        ("package/e\u0301vil.py", errors.UnsafeName),  # not composed
        ("package/" + "x" * 300, errors.UnsafeName),
        ("package/acme_voice/main.PY", errors.CaseCollision),
        ("package/Acme_voice/other.py", errors.CaseCollision),
        ("package/acme_voice/ma\uff49n.py", errors.CaseCollision),  # a wide i
        ("package/acme_voice/main.py/inside", errors.DuplicateName),
        ("package/acme_voice", errors.DuplicateName),
        ("evil.py", errors.WrongLayout),
        ("package/other/evil.py", errors.WrongLayout),
        ("package/acme_voice/__pycache__/main.cpython-311.pyc", errors.CompiledCode),
        ("package/acme_voice/main.pyc", errors.CompiledCode),
    ],
)
def test_a_file_with_a_name_that_is_no_place_in_the_capsule(name: str, problem: type[CapsuleError]) -> None:
    with pytest.raises(problem):
        open_capsule(with_files(**{name: b"print('evil')"}))


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("mode", [0o120777, 0o060600, 0o010600, 0o040755])
def test_a_link_a_device_a_pipe_or_a_folder(mode: int) -> None:
    files = [*entries_of(capsule().data).items(), (entry("package/acme_voice/link", mode), b"/etc/passwd")]

    with pytest.raises(errors.NotAFile):
        open_capsule(zipped(files))


@pytest.mark.req("TOOLS-32")
def test_a_folder_as_an_entry_of_its_own() -> None:
    with pytest.raises(errors.NotAFile):
        open_capsule(zipped([*entries_of(capsule().data).items(), (entry("package/empty/"), b"")]))


@pytest.mark.req("TOOLS-32")
def test_a_name_that_stands_twice() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twice = zipped([*entries_of(capsule().data).items(), ("package/acme_voice/main.py", b"evil")])

    with pytest.raises(errors.DuplicateName):
        open_capsule(twice)


@pytest.mark.req("TOOLS-32")
def test_a_bomb_is_refused_without_being_unpacked() -> None:
    bomb = zipped({"package/acme_voice/zeros": bytes(256 * 1024 * 1024)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 300_000
    tracemalloc.start()

    with pytest.raises(errors.Compressed):
        open_capsule(bomb)

    assert tracemalloc.get_traced_memory()[1] < 8 * 1024 * 1024
    tracemalloc.stop()


@pytest.mark.req("TOOLS-32")
def test_a_bomb_whose_files_share_their_bytes() -> None:
    data = bytearray(zipped({f"package/acme_voice/{number}": bytes(1000) for number in range(100)}))
    first = data.index(b"PK\x01\x02")
    at = first
    while (
        at := data.find(b"PK\x01\x02", at)
    ) >= 0:  # each entry of the directory names the first file's bytes, and more of them
        data[at + 20 : at + 28] = struct.pack("<2L", 100_000, 100_000)
        at += 4

    with pytest.raises(errors.Compressed):
        open_capsule(bytes(data))


@pytest.mark.req("TOOLS-32")
def test_a_directory_that_says_it_is_endless() -> None:
    data = bytearray(capsule().data)
    data[-12:-10] = struct.pack("<H", 65_535)

    with pytest.raises(errors.TooLarge):
        open_capsule(bytes(data))


@pytest.mark.req("TOOLS-32")
def test_more_files_and_more_bytes_than_a_capsule_has() -> None:
    with pytest.raises(errors.TooLarge):
        open_capsule(
            archive._written({f"package/acme_voice/{number}": b"" for number in range(archive.MAX_CAPSULE_FILES + 1)})
        )
    with pytest.raises(errors.TooLarge):
        open_capsule(bytes(MAX_CAPSULE_BYTES + 1))
    with pytest.raises(errors.TooLarge):
        archive.write_archive({"package/acme_voice/large": bytes(MAX_CAPSULE_BYTES)})


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("tail", [b"x", b"\0" * 22, b"PK\x05\x06"])
def test_something_behind_the_archive(tail: bytes) -> None:
    with pytest.raises(errors.TrailingData):
        open_capsule(capsule().data + tail)


@pytest.mark.req("TOOLS-32")
def test_something_before_the_archive_or_in_its_comment() -> None:
    good = capsule().data
    commented = good[:-2] + struct.pack("<H", 4) + b"evil"

    for changed in (b"#!/bin/sh\n" + good, good + good, commented):
        with pytest.raises(CapsuleError) as caught:
            open_capsule(changed)
        assert type(caught.value) in (errors.TrailingData, errors.ChangedBytes)


@pytest.mark.req("TOOLS-32")
def test_something_between_the_files_that_no_directory_names() -> None:
    good = capsule().data
    directory = good.index(b"PK\x01\x02")
    at = len(good) - 22
    offset = struct.unpack("<L", good[at + 16 : at + 20])[0]
    hidden = b"hidden"
    changed = (
        good[:directory]
        + hidden
        + good[directory : at + 16]
        + struct.pack("<L", offset + len(hidden))
        + good[at + 20 :]
    )

    with pytest.raises(errors.ChangedBytes):
        open_capsule(changed)


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip" * 10, bytes(1000)])
def test_what_is_no_archive(data: bytes) -> None:
    with pytest.raises(errors.NotAnArchive):
        open_capsule(data)


@pytest.mark.req("TOOLS-32")
def test_half_of_a_capsule() -> None:
    good = capsule().data

    with pytest.raises(errors.NotAnArchive):
        open_capsule(good[: len(good) // 2])


@pytest.mark.req("TOOLS-32")
def test_every_changed_byte_is_noticed() -> None:
    good = capsule().data
    chosen = random.Random(7)
    for at in range(len(good)):
        changed = bytearray(good)
        changed[at] ^= 1 << chosen.randrange(8)
        with pytest.raises(CapsuleError):
            open_capsule(bytes(changed))


@pytest.mark.req("TOOLS-32")
def test_the_same_files_in_another_order_are_no_capsule() -> None:
    files = list(entries_of(capsule().data).items())

    with pytest.raises(errors.ChangedBytes):
        open_capsule(zipped([(entry(name, 0), content) for name, content in reversed(files)]))


MANIFEST = "manifests/acme.voice.shout.json"


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"{", errors.WrongManifest),
        (b"[]", errors.WrongManifest),
        (b'{"id": "a", "id": "b"}', errors.WrongManifest),
        (b'{"id": NaN}', errors.WrongManifest),
        (b"[" * 100_000, errors.WrongManifest),
        (b"\xff\xfe", errors.WrongLayout),
        (b'{"id": "acme.voice.shout", "version": "1.0.0"}', errors.WrongManifest),
        (b'{"id": "acme.voice.shout", "version": "1.0.0", "implementation": {"program": 1}}', errors.WrongManifest),
        (
            b'{"id": "acme.voice.shout", "version": "1.0.0", "implementation": {"module": "other.main"}}',
            errors.WrongManifest,
        ),
        (
            b'{"id": "acme.voice.shout", "version": "1.0.0", "implementation": {"module": "acme_voice.no"}}',
            errors.WrongManifest,
        ),
        (b'{"id": "another.id.altogether", "version": "1.0.0", "implementation": {}}', errors.WrongManifest),
        (b" " * (1024 * 1024 + 1), errors.TooLarge),
    ],
)
def test_a_manifest_that_is_none(content: bytes, problem: type[CapsuleError]) -> None:
    with pytest.raises(problem):
        open_capsule(with_files(**{MANIFEST: content}))


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("changes", [{"dependency_lock": 5}, {"dependency_lock": True}, {"dependency_lock": {"a": 1}}])
def test_a_lock_that_is_no_list_is_a_wrong_manifest(changes: dict[str, Any]) -> None:
    with pytest.raises(errors.WrongManifest):
        open_capsule(with_files(**{MANIFEST: json.dumps(shouting(**changes)).encode()}))


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize("id", [None, 7, ["a"]])
def test_a_manifest_is_not_named_after_what_is_no_id(id: Any) -> None:
    files = entries_of(capsule().data)
    del files[MANIFEST]
    said = {name: value for name, value in (shouting() | {"id": id}).items() if value is not None}

    with pytest.raises(errors.WrongManifest):
        open_capsule(archive.write_archive(files | {f"manifests/{id}.json": json.dumps(said).encode()}))


@pytest.mark.req("TOOLS-32")
@pytest.mark.parametrize(
    "about",
    [
        b"{}",
        b'{"format": "unitools.capsule/2", "package": "acme_voice"}',
        b'{"format": "unitools.capsule/1", "package": "json"}',
        b'{"format": "unitools.capsule/1", "package": "../.."}',
        b'{"format": "unitools.capsule/1", "package": 7}',
        b'{"format": "unitools.capsule/1", "package": "acme_voice", "more": 1}',
    ],
)
def test_a_capsule_that_does_not_say_what_it_is(about: bytes) -> None:
    with pytest.raises(errors.WrongLayout):
        open_capsule(with_files(**{"capsule.json": about}))


@pytest.mark.req("TOOLS-32")
def test_a_capsule_without_its_parts() -> None:
    whole = entries_of(capsule().data)

    for missing, problem in (("capsule.json", errors.WrongLayout), (MANIFEST, errors.WrongLayout)):
        with pytest.raises(problem):
            open_capsule(archive._written({name: content for name, content in whole.items() if name != missing}))
    with pytest.raises(errors.WrongManifest):
        open_capsule(
            archive._written({name: content for name, content in whole.items() if not name.startswith("package/")})
        )


@pytest.mark.req("TOOLS-32")
def test_a_lock_that_is_not_the_one_of_the_manifest() -> None:
    line = f"six==1.17.0 --hash=sha256:{'0' * 64}"
    changes: dict[str, Any] = {"dependencies": ["six==1.17.0"]}
    locked = capsule(shouting(**changes), lock=[line])
    assert locked.lock == (line,) and locked.manifests[0]["dependency_lock"] == [line]
    files = entries_of(locked.data)

    with pytest.raises(errors.WrongManifest):
        open_capsule(archive._written(files | {"lock.txt": line.replace("0" * 64, "1" * 64).encode()}))
    with pytest.raises(errors.WrongManifest):
        open_capsule(archive._written({name: content for name, content in files.items() if name != "lock.txt"}))
