"""Npm packages: does a lock become a folder of this host without npm, and does whatever is not as the lock says become a sentence?"""

from __future__ import annotations

import base64
import os
import stat
import threading
from typing import TYPE_CHECKING, Any

import pytest

from registry.dependencies import npm
from registry.dependencies.builder import BuildInterrupted
from registry.dependencies.pip import ProgressHooks
from tests.support.dependencies import build, failure_of
from tests.support.npm_packages import line_of, pack_files, pack_package, path_of, serve_registry
from unitools.npm_locks import read_npm_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIBRARY = pack_package("library", "2.0.0", files={"index.js": "export default 1;"})
INNER = pack_package("library", "1.0.0", files={"index.js": "export default 0;"})
SERVER = pack_package(files={"server.mjs": ""}, bin={"a-server": "server.mjs"})


@pytest.fixture
def files() -> dict[str, bytes]:
    return {path_of(): SERVER, path_of("library", "2.0.0"): LIBRARY, path_of("library", "1.0.0"): INNER}


@pytest.fixture(autouse=True)
def asked(tmp_path: Path, settings: Any, files: dict[str, bytes]) -> Iterator[list[str]]:
    """What the registry is asked for."""
    settings.TOOLHUB_DEPENDENCY_DIR = str(tmp_path / "deps")
    settings.TOOLHUB_OUTBOUND_NETWORKS = ["127.0.0.0/8"]
    with serve_registry(files) as (address, heard):
        settings.TOOLHUB_NPM_REGISTRY = address
        yield heard


@pytest.mark.req("BRING-2")
def test_each_package_lies_at_its_place_read_only(asked: list[str]) -> None:
    lock = [
        line_of(SERVER),
        line_of(LIBRARY, "library", "2.0.0"),
        line_of(INNER, "library", "1.0.0", place="node_modules/@a/server/node_modules/library"),
    ]

    folder = build(lock)

    assert (folder / "node_modules/library/index.js").read_text() == "export default 1;"
    assert (folder / "node_modules/@a/server/node_modules/library/index.js").read_text() == "export default 0;"
    assert {stat.S_IMODE(os.lstat(path).st_mode) & 0o333 for path in folder.rglob("*") if path.is_file()} == {0}
    assert sorted(asked) == sorted([path_of(), path_of("library", "1.0.0"), path_of("library", "2.0.0")])
    assert build(lock) == folder
    assert len(asked) == 3


@pytest.mark.req("BRING-2")
def test_a_file_that_lies_at_several_places_is_fetched_once(asked: list[str]) -> None:
    places = [f"node_modules/{name}" for name in ("library", "one", "two", "three", "x1", "x2", "x3")]
    lock = [line_of(SERVER), *(line_of(LIBRARY, "library", "2.0.0", place=place) for place in places)]

    folder = build(lock)

    assert {(folder / place / "index.js").read_text() for place in places} == {"export default 1;"}
    assert sorted(asked) == sorted([path_of(), path_of("library", "2.0.0")])
    assert [path.name for path in folder.parent.iterdir() if path.name.endswith(".part")] == []


@pytest.mark.req("BRING-2")
def test_what_is_optional_and_for_another_machine_or_needs_a_build_is_left_out(
    files: dict[str, bytes], asked: list[str]
) -> None:
    built = files[path_of("built", "1.0.0")] = pack_package("built", "1.0.0", scripts={"install": "node-gyp rebuild"})
    other = line_of(LIBRARY, "library", "2.0.0", cpu=("mips",), is_optional=True)

    folder = build([line_of(SERVER), other, line_of(built, "built", is_optional=True)])

    assert [path.name for path in (folder / "node_modules").iterdir()] == ["@a"]
    assert path_of("library", "2.0.0") not in asked


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("packed", "code", "says"),
    [
        (pack_package(scripts={"postinstall": "node steal.js"}), "install_script", "postinstall"),
        (pack_package(files={"binding.gyp": "{}"}), "install_script", "binding.gyp"),
        (pack_package(version="6.6.6"), "archive_unfit", "of another package or version"),
        (pack_package("another"), "archive_unfit", "of another package or version"),
        (pack_files([("package/../../x", b"x")]), "archive_unfit", "none that a file may have"),
        (b"no archive", "archive_unfit", "no gzip"),
    ],
    ids=["script", "build", "version", "name", "path", "gzip"],
)
def test_a_package_that_is_not_taken_is_named_with_what_to_do(
    files: dict[str, bytes], packed: bytes, code: str, says: str
) -> None:
    files[path_of()] = packed

    found, message, remedy = failure_of(lambda: build([line_of(packed)]))

    assert found == code
    assert "@a/server 1.0.0" in message
    assert says in message
    assert "version" in remedy


@pytest.mark.req("BRING-2")
def test_another_file_than_the_lock_names_is_not_taken(files: dict[str, bytes]) -> None:
    lock = [line_of(SERVER)]
    files[path_of()] = pack_package(files={"server.mjs": "steal()"})

    code, message, _ = failure_of(lambda: build(lock))

    assert (code, "@a/server" in message) == ("hash_mismatch", True)


@pytest.mark.req("BRING-2")
def test_two_packages_are_not_at_one_place(files: dict[str, bytes]) -> None:
    bundling = files[path_of()] = pack_package(files={"node_modules/library/package.json": "{}"})
    lock = [line_of(bundling), line_of(INNER, "library", "1.0.0", place="node_modules/@a/server/node_modules/library")]

    assert "belongs to its place" in failure_of(lambda: build(lock))[1]


@pytest.mark.req("BRING-2")
def test_a_package_for_another_machine_that_is_needed_is_named() -> None:
    code, message, _ = failure_of(lambda: build([line_of(SERVER, os=("darwin",))]))

    assert (code, "@a/server" in message) == ("other_machine", True)


@pytest.mark.parametrize(
    ("address", "code"), [("http://127.0.0.1:9", "index_unreachable"), ("http://10.1.2.3", "index_refused")]
)
def test_a_registry_that_is_not_to_be_had_is_said_without_its_address(settings: Any, address: str, code: str) -> None:
    settings.TOOLHUB_NPM_REGISTRY = address

    found, message, remedy = failure_of(lambda: build([line_of(SERVER)]))

    assert (found, "TOOLHUB_NPM_REGISTRY" in remedy) == (code, True)
    assert address.partition("://")[2] not in message


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize("lost", [npm.TRIES - 1, npm.TRIES])
def test_a_file_that_does_not_come_is_asked_for_again_and_not_for_ever(
    settings: Any, monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes], lost: int
) -> None:
    monkeypatch.setattr(npm, "PAUSE_S", 0.0)
    left = iter(range(lost))

    def hang_up() -> None:
        if next(left, None) is not None:
            raise ConnectionResetError

    with serve_registry(files, before=hang_up) as (settings.TOOLHUB_NPM_REGISTRY, asked):
        if lost < npm.TRIES:
            assert (build([line_of(SERVER)]) / "node_modules/@a/server/server.mjs").exists()
        else:
            assert failure_of(lambda: build([line_of(SERVER)]))[0] == "index_unreachable"

    assert asked == [path_of()] * npm.TRIES


def test_what_the_registry_does_not_have_is_said(files: dict[str, bytes]) -> None:
    del files[path_of()]

    assert failure_of(lambda: build([line_of(SERVER)]))[0] == "unknown_package"


def test_credentials_of_the_setting_stand_in_a_header_and_no_address(settings: Any) -> None:
    settings.TOOLHUB_NPM_REGISTRY = "https://me:p%40ss@npm.example/x/"

    address, headers = npm._build_request(read_npm_line(line_of(SERVER)))

    assert address == "https://npm.example/x/@a/server/-/server-1.0.0.tgz"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"me:p@ss"


@pytest.mark.req("BRING-2")
def test_whoever_builds_is_believed_to_be_there_while_a_file_is_fetched(settings: Any, files: dict[str, bytes]) -> None:
    """A file may take longer than the lease of a build: without a beat meanwhile another process would begin the same."""
    asked, renewed = threading.Event(), threading.Event()

    def answer_after_a_beat() -> None:
        asked.set()
        assert renewed.wait(60)

    def beat() -> None:
        if asked.is_set():
            renewed.set()

    with serve_registry(files, answer_after_a_beat) as (address, _):
        settings.TOOLHUB_NPM_REGISTRY = address
        folder = build([line_of(SERVER)], talk=ProgressHooks(lambda _: None, beat))

    assert (folder / "node_modules/@a/server/server.mjs").is_file()


@pytest.mark.req("BRING-2")
def test_who_is_told_to_stop_waits_for_no_registry(settings: Any, files: dict[str, bytes]) -> None:
    asked, over = threading.Event(), threading.Event()

    def answer_when_over() -> None:
        asked.set()
        over.wait(60)

    def stop() -> None:
        if asked.is_set():
            raise BuildInterrupted

    with serve_registry(files, answer_when_over) as (address, _):
        settings.TOOLHUB_NPM_REGISTRY = address
        with pytest.raises(BuildInterrupted):
            build([line_of(SERVER)], talk=ProgressHooks(lambda _: None, stop))
        assert not over.is_set()
        over.set()


@pytest.mark.req("BRING-2")
def test_all_packages_together_have_one_time(
    settings: Any, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever builds holds the one lock of the host, for which all other builds wait."""
    over = threading.Event()
    monkeypatch.setattr(npm, "INSTALL_WITHIN_S", 0)
    with serve_registry(files, lambda: over.wait(60)) as (address, _):
        settings.TOOLHUB_NPM_REGISTRY = address
        code, _, remedy = failure_of(lambda: build([line_of(SERVER)]))
        assert not over.is_set()
        over.set()

    assert (code, "TOOLHUB_NPM_REGISTRY" in remedy) == ("too_slow", True)


@pytest.mark.req("BRING-2")
@pytest.mark.parametrize(
    ("about", "complete"),
    [
        ({"dependencies": {"library": "^2"}}, True),
        ({"dependencies": {"missing": "^1"}}, False),
        ({"dependencies": {"@a/missing": "^1"}}, False),
        ({"dependencies": {"../../../etc": "^1"}}, False),
        ({"dependencies": {"missing": "^1"}, "optionalDependencies": {"missing": "^1"}}, True),
        ({"optionalDependencies": {"missing": "^1"}}, True),
        ({"devDependencies": {"missing": "^1"}}, True),
        ({"dependencies": {"bundled": "^1"}}, True),
        ({"dependencies": {"alias": "npm:library@^2"}}, True),
        ({"dependencies": ["no", "names"]}, True),
    ],
)
def test_a_lock_holds_all_that_its_packages_need(
    files: dict[str, bytes], about: dict[str, Any], complete: bool
) -> None:
    inside = {"node_modules/bundled/package.json": "{}"}
    packed = files[path_of()] = pack_package(files=inside, **about)
    lock = [
        line_of(packed),
        line_of(LIBRARY, "library", "2.0.0"),
        line_of(LIBRARY, "library", "2.0.0", place="node_modules/alias"),
    ]

    if complete:
        assert build(lock).is_dir()
        return
    code, message, remedy = failure_of(lambda: build(lock))
    assert code == "incomplete"
    assert "@a/server 1.0.0 needs: " in message
    assert "dependency_lock" in remedy


@pytest.mark.req("BRING-2")
def test_what_all_packages_take_together_is_bounded_before_it_is_written(
    files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = [line_of(SERVER), line_of(LIBRARY, "library", "2.0.0")]

    monkeypatch.setattr(npm, "MAX_ALL_FILES", 3)
    assert failure_of(lambda: build(lock))[0] == "too_many_files"
    monkeypatch.setattr(npm, "MAX_ALL_FILES", 1000)
    monkeypatch.setattr(npm, "MAX_ALL_BYTES", 3 * 4096)
    assert failure_of(lambda: build(lock))[0] == "too_large"
