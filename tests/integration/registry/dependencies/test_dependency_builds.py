"""Dependency builds: is a folder of dependencies exactly what its lock says?"""

from __future__ import annotations

import marshal
import os
import stat
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

import pytest

from registry.dependencies import build_steps, store, target
from registry.dependencies.pip import ProgressHooks
from tests.support.dependencies import SILENT, ZEROS, build, imported, nothing
from tests.support.wheels import line, make_wheel


@pytest.mark.req("SVC-9")
def test_what_is_locked_is_installed_and_nothing_beside_it(wheels: Path) -> None:
    first = make_wheel(wheels, "first", requires=["second>=1"])
    second = make_wheel(wheels, "second", "1.2")
    make_wheel(wheels, "second", "1.3")

    folder = build([line("first", first), line("second", second, "1.2")], "first==1.0")

    assert imported(folder, "import first, second; print(first.VERSION, second.VERSION)") == "1.0 1.2"
    assert folder.parent == store.store_root()
    assert store.list_folders() == {folder.name}
    assert {path.name.partition("-")[0].removesuffix(".py") for path in folder.iterdir()} == {
        "first",
        "second",
        "__pycache__",
    }


@pytest.mark.req("SVC-9")
def test_the_folder_is_read_only_compiled_and_says_nothing_of_this_host(wheels: Path) -> None:
    made = make_wheel(
        wheels, "first", code="def fail():\n    raise ValueError\n", files={"pack/__init__.py": "", "pack/a.py": ""}
    )

    folder = build([line("first", made)])

    modes = {stat.S_IMODE(os.lstat(path).st_mode) & 0o222 for path in [folder, *folder.rglob("*")]}
    assert modes == {0}
    for source in folder.rglob("*.py"):
        compiled = source.parent / "__pycache__" / f"{source.stem}.cpython-311.pyc"
        magic, flags = compiled.read_bytes()[:4], int.from_bytes(compiled.read_bytes()[4:8], "little")
        assert magic == MAGIC_NUMBER
        assert flags == 0b01  # by hash, and never held against the source
        code = marshal.loads(compiled.read_bytes()[16:])
        assert code.co_filename == f"/deps/{source.relative_to(folder)}"


def test_a_folder_that_is_there_is_taken_as_it_is(wheels: Path) -> None:
    made = line("first", make_wheel(wheels, "first"))
    folder = build([made])
    before = folder.stat().st_mtime_ns
    (wheels / "first-1.0-py3-none-any.whl").unlink()

    assert build([made]) == folder
    assert (
        build([f"First == 1.0   --hash=sha256:{made.rpartition(':')[2]}"], "first==1.0") == folder
    )  # the same, in other words
    assert folder.stat().st_mtime_ns == before


def test_another_python_or_another_machine_means_another_folder(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = "sha256:" + ZEROS
    names = {target.folder_name(lock), target.folder_name("sha256:" + "1" * 64)}
    for word, value in (("PYTHON_TEXT", "3.12"), ("target_machine", lambda: "riscv64")):
        monkeypatch.setattr(target, word, value)
        names.add(target.folder_name(lock))
        monkeypatch.undo()

    assert len(names) == 4


@pytest.mark.req("SVC-9")
def test_the_sandbox_is_what_wheels_are_chosen_for() -> None:
    """The image's Python and its C library stand in the Dockerfile."""
    dockerfile = (Path(__file__).parents[4] / "sandbox/image/Dockerfile").read_text()

    assert f"ARG BASE=python:{target.PYTHON_TEXT}-slim-bookworm" in dockerfile
    assert target.list_platforms()[0] == f"manylinux_2_36_{target.target_machine()}"


def test_nothing_of_a_package_runs_while_it_is_installed(wheels: Path, tmp_path: Path) -> None:
    """Wheels have no hooks; what would run at the start of a Python lies there and is not run."""
    mark = tmp_path / "ran"
    code = f"open({str(mark)!r}, 'w').close()\n"
    files = {"first.pth": f"import sys; {code}", "sitecustomize.py": code, "usercustomize.py": code, "setup.py": code}
    make = make_wheel(wheels, "first", code=code, files=files)

    build([line("first", make)])

    assert not mark.exists()


def test_a_wheel_for_the_sandboxes_python_is_taken_whatever_the_hub_runs_on(wheels: Path) -> None:
    made = make_wheel(wheels, "only", tag=f"cp311-cp311-manylinux_2_28_{target.target_machine()}")
    make_wheel(wheels, "only", tag=f"cp311-cp311-manylinux_2_40_{target.target_machine()}")  # of a later C library

    assert build_steps.resolve_requirements(["only==1.0"], talk=SILENT) == [line("only", made)]


@pytest.mark.req("SVC-9")
def test_what_comes_along_is_found_and_locked_with_its_hash(wheels: Path) -> None:
    hashes = {
        "first": make_wheel(
            wheels, "first", requires=["second", 'extra-one; extra == "more"', 'never; sys_platform == "win32"']
        ),
        "second": make_wheel(wheels, "second", requires=["third-party"]),
        "third-party": make_wheel(wheels, "third-party"),
        "extra-one": make_wheel(wheels, "extra-one"),
    }

    found = build_steps.resolve_requirements(["first[more]==1.0"], talk=SILENT)

    assert found == sorted(line(name, sha256) for name, sha256 in hashes.items())
    assert build(found, "first[more]==1.0").is_dir()


def test_an_entry_whose_marker_is_not_true_in_the_sandbox_is_left_out(wheels: Path) -> None:
    made = make_wheel(wheels, "first")
    absent = f"other==1.0 ; sys_platform == 'win32' --hash=sha256:{ZEROS}"

    folder = build([line("first", made), absent], "first==1.0")

    assert not (folder / "other.py").exists()


def test_what_is_being_done_is_told(wheels: Path) -> None:
    told: list[str] = []
    made = make_wheel(wheels, "first")

    build([line("first", made)], talk=ProgressHooks(told.append, nothing))

    assert told == [
        "Installing from the lock",
        "Taking first-1.0-py3-none-any.whl",
        "Installing first",
        "Compiling",
        "Putting it in place",
    ]


def test_who_is_told_to_stop_leaves_nothing_behind(wheels: Path) -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        build([line("first", make_wheel(wheels, "first"))], talk=ProgressHooks(nothing, stop))

    assert list(store.store_root().iterdir()) == []


def test_only_one_process_of_a_host_builds(wheels: Path) -> None:
    with store.claim_host() as first, store.claim_host() as second:
        assert (first, second) == (True, False)
    with store.claim_host() as again:
        assert again


def test_what_nobody_needs_is_removed_and_what_a_crash_left(wheels: Path) -> None:
    kept, spare = (build([line(name, make_wheel(wheels, name))]) for name in ("kept", "spare"))
    (store.store_root() / f"crashed{store.PART}").mkdir()

    assert store.remove_unneeded({kept.name}, older_than_s=3600) == []  # a box may have it still
    assert store.remove_unneeded({kept.name}, older_than_s=-3600) == [spare.name]
    assert {path.name for path in store.store_root().iterdir()} - {".building"} == {kept.name}


@pytest.mark.req("SVC-9")
def test_a_package_of_the_index_that_this_machine_is_set_up_for(wheels: Path, settings: Any) -> None:
    settings.TOOLHUB_WHEELHOUSE = ""

    lock = build_steps.resolve_requirements(["idna==3.10"], talk=SILENT)
    folder = build(lock, "idna==3.10")

    assert lock == [line("idna", "946d195a0d259cbba61165e88e65941f16e9b36ea6ddb97f00452bae8b1287d3", "3.10")]
    assert imported(folder, "import idna; print(idna.encode('bücher').decode())") == "xn--bcher-kva"
