"""Image layers: does what an image is put together from come out as it went in, and nowhere else?"""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

from sandbox.image import BROWSER, GIT, LAYER_RECIPE, NODE, ROOT
from sandbox.image.assemble import unpack_wheel
from scripts.provision import debian

if TYPE_CHECKING:
    from pathlib import Path


def test_lists_of_packages_are_read_as_one_without_their_comments(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("# Debian packages\npython3\n\nchromium\n")
    (tmp_path / "b.txt").write_text("  python3  \nabook\n")

    assert debian.read_package_names(tmp_path / "a.txt", tmp_path / "b.txt") == ["abook", "chromium", "python3"]


@pytest.mark.parametrize("kind", [BROWSER, NODE, GIT])
def test_a_layer_is_made_of_packages_with_plain_names(kind: str) -> None:
    names = debian.read_package_names(
        *(ROOT / "sandbox" / "image" / name for name in LAYER_RECIPE[kind] if name.endswith(".txt"))
    )

    assert "python3" in names
    assert [name for name in names if not name.replace("-", "").replace("+", "").replace(".", "").isalnum()] == []


def test_a_wheel_keeps_which_of_its_files_are_programs(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        program = zipfile.ZipInfo("pack/driver/node")
        program.external_attr = 0o100755 << 16
        archive.writestr(program, "program")
        archive.writestr("pack/__init__.py", "")

    unpack_wheel(tmp_path / "a.whl", tmp_path / "there")

    assert (tmp_path / "there/pack/driver/node").stat().st_mode & 0o777 == 0o555
    assert (tmp_path / "there/pack/__init__.py").stat().st_mode & 0o777 == 0o444


@pytest.mark.parametrize("name", ["../outside", "/outside", "pack/../../outside"])
def test_nothing_of_a_wheel_lies_outside_its_place(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr(name, "x")

    unpack_wheel(tmp_path / "a.whl", tmp_path / "there")

    assert not (tmp_path / "outside").exists()
    assert len([path for path in (tmp_path / "there").rglob("*") if path.is_file()]) == 1
