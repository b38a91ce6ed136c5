from __future__ import annotations

import io
import os
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.support.manifests import manifest
from unitools import packages
from unitools.manifest import Manifest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "commerce"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "pricing.py").write_text("PRICE = 1\n")
    (folder / "data" / "prices.json").write_text("{}")
    return folder


def test_a_package_is_found_in_the_first_root_that_has_it(package: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()

    assert packages.find_package("commerce.pricing", [empty, package.parent]) == package


@pytest.mark.parametrize("module", ["commerce.nothing", "commerce.pricing.quote", "commerce.data"])
def test_a_package_must_hold_the_module(package: Path, module: str) -> None:
    with pytest.raises(packages.ModuleNotFound, match=module):
        packages.find_package(module, [package.parent])


def test_a_package_that_is_nowhere_is_named_with_the_places(tmp_path: Path) -> None:
    with pytest.raises(packages.PackageNotFound, match=f"nothing.*{tmp_path}"):
        packages.find_package("nothing.here", [tmp_path])


@pytest.mark.parametrize("module", ["json.x", "unitools.runtime", "sandbox.call"])
def test_the_names_of_what_is_in_the_box_are_taken(tmp_path: Path, module: str) -> None:
    with pytest.raises(packages.PackageNameTaken):
        packages.find_package(module, [tmp_path])


@pytest.mark.parametrize("module", ["", "../etc", "a/b", ".x"])
def test_a_module_is_no_path(tmp_path: Path, module: str) -> None:
    with pytest.raises(packages.PackageNotFound):
        packages.find_package(module, [tmp_path])


def test_the_same_files_give_the_same_zip_and_digest(package: Path) -> None:
    first = packages.build_zip(package), packages.compute_package_digest(package)
    os.utime(package / "pricing.py", (1, 1))
    (package / "__pycache__").mkdir()
    (package / "__pycache__" / "pricing.cpython-311.pyc").write_bytes(b"x")
    (package / "old.pyc").write_bytes(b"x")

    assert (packages.build_zip(package), packages.compute_package_digest(package)) == first
    with zipfile.ZipFile(io.BytesIO(first[0])) as archive:
        assert archive.namelist() == ["commerce/__init__.py", "commerce/data/prices.json", "commerce/pricing.py"]
    assert first[1].startswith("sha256:")


@pytest.mark.parametrize("change", ["content", "name", "new"])
def test_any_change_of_a_file_changes_the_digest(package: Path, change: str) -> None:
    before = packages.compute_package_digest(package)
    match change:
        case "content":
            (package / "pricing.py").write_text("PRICE = 2\n")
        case "name":
            (package / "pricing.py").rename(package / "prices.py")
        case "new":
            (package / "more.py").write_text("")

    assert packages.compute_package_digest(package) != before


def test_a_link_is_refused(package: Path) -> None:
    (package / "shadow").symlink_to("/etc/shadow")

    with pytest.raises(packages.PackageNotPlain, match="shadow"):
        packages.build_zip(package)


def test_a_linked_folder_is_refused(package: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(package)
    (package / "more").symlink_to(tmp_path)

    with pytest.raises(packages.PackageNotPlain):
        packages.compute_package_digest(package)
    with pytest.raises(packages.PackageNotPlain):
        packages.find_package("linked", [tmp_path])


def test_a_pipe_is_refused(package: Path) -> None:
    os.mkfifo(package / "pipe")

    with pytest.raises(packages.PackageNotPlain, match="pipe"):
        packages.build_zip(package)


def test_too_much_is_refused_without_reading_it(package: Path) -> None:
    with (package / "large").open("wb") as file:
        file.truncate(packages.MAX_PACKAGE_BYTES + 1)

    with pytest.raises(packages.PackageTooLarge, match="commerce"):
        packages.build_zip(package)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    folder = tmp_path / "tools" / "letters"
    (folder / "lib").mkdir(parents=True)
    (folder / "main.js").write_text("")
    (folder / "lib" / "count.js").write_text("")
    return folder


@pytest.mark.parametrize("argument", ["main.js", "lib/count.js"])
def test_the_package_of_a_program_is_the_folder_that_it_names(script: Path, argument: str) -> None:
    implementation = {"program": ["/usr/bin/node", "--no-warnings", argument], "package": "letters", "image": "node"}
    said = Manifest(manifest(implementation=implementation))

    assert packages.find_shipped(said, [script.parent]) == script
    assert (said.module, said.package, said.image) == ("", "letters", "node")


@pytest.mark.parametrize(
    "program", [["/usr/bin/jq", "."], ["/usr/bin/node", "../letters/main.js"], ["/usr/bin/node", "lib"]]
)
def test_a_program_must_be_given_a_file_of_its_package(script: Path, program: list[str]) -> None:
    with pytest.raises(packages.ProgramNotFound, match="letters"):
        packages.find_program("letters", program, [script.parent])


def test_a_function_is_shipped_with_the_package_of_its_module(package: Path) -> None:
    said = Manifest(manifest(implementation={"module": "commerce.pricing"}))

    assert packages.find_shipped(said, [package.parent]) == package
    assert (said.package, said.program) == ("commerce", ())
