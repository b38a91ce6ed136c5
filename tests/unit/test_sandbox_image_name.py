"""Does the image's name follow its sources, and nothing else?"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from sandbox.image import ROOT, build_context, image_name

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for name, path in build_context().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, tmp_path / name)
    return tmp_path


def test_the_same_sources_have_the_same_name_wherever_they_lie(copy: Path) -> None:
    assert image_name(copy) == image_name(ROOT)


@pytest.mark.parametrize("source", sorted(build_context()))
def test_a_change_in_any_source_is_another_image(copy: Path, source: str) -> None:
    with (copy / source).open("a") as file:
        file.write("\n")

    assert image_name(copy) != image_name(ROOT)


def test_a_new_module_in_the_box_is_another_image(copy: Path) -> None:
    (copy / "sandbox" / "more.py").write_text("")

    assert image_name(copy) != image_name(ROOT)


def test_a_file_that_the_image_does_not_hold_changes_nothing(copy: Path) -> None:
    (copy / "unitools" / "drivers.py").write_text("")
    (copy / "sandbox" / "README.md").write_text("")

    assert image_name(copy) == image_name(ROOT)
