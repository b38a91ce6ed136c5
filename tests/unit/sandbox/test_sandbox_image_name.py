"""Names of the images: do the images' names follow their sources, and nothing else?"""

from __future__ import annotations

import ast
import shutil
from typing import TYPE_CHECKING

import pytest

from sandbox.image import (
    BROWSER,
    GIT,
    KINDS,
    LAYER_RECIPE,
    NODE,
    ON_LAYER,
    ROOT,
    build_context,
    find_image,
    image_name,
    layer_name,
    read_images,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return copy_sources(tmp_path)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy that every test leaves as it was."""
    return copy_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def names() -> set[str]:
    return {image_name(ROOT, kind) for kind in KINDS}


def copy_sources(to: Path) -> Path:
    layers = {f"sandbox/image/{name}" for names in LAYER_RECIPE.values() for name in names} | {ON_LAYER}
    for name, path in (build_context() | {name: ROOT / name for name in layers}).items():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to / name)
    return to


def test_the_same_sources_have_the_same_name_wherever_they_lie(copy: Path) -> None:
    assert [image_name(copy, kind) for kind in KINDS] == [image_name(ROOT, kind) for kind in KINDS]


@pytest.mark.parametrize("source", sorted(build_context()))
def test_a_change_in_any_source_is_another_image(sources: Path, names: set[str], source: str) -> None:
    with (sources / source).open("a") as file:
        file.write("\n")

    found = {image_name(sources, kind) for kind in KINDS}

    shutil.copyfile(ROOT / source, sources / source)
    assert not found & names


def test_a_new_module_in_the_box_is_another_image(copy: Path) -> None:
    (copy / "sandbox" / "more.py").write_text("")

    assert image_name(copy) != image_name(ROOT)


def test_a_file_that_the_image_does_not_hold_changes_nothing(copy: Path) -> None:
    (copy / "unitools" / "command").mkdir()
    (copy / "unitools" / "command" / "more.py").write_text("")
    (copy / "sandbox" / "README.md").write_text("")

    assert image_name(copy) == image_name(ROOT)


@pytest.mark.parametrize("kind", [BROWSER, NODE, GIT])
def test_a_change_of_ours_leaves_the_large_layer_as_it_is(copy: Path, kind: str) -> None:
    (copy / "sandbox" / "more.py").write_text("")

    assert image_name(copy, kind) != image_name(ROOT, kind)
    assert layer_name(kind, copy) == layer_name(kind, ROOT)


@pytest.mark.parametrize("kind", [BROWSER, NODE, GIT])
def test_a_change_of_a_layers_recipe_is_another_layer_and_another_image_of_its_kind(copy: Path, kind: str) -> None:
    others = {BROWSER, NODE, GIT} - {kind}
    with (copy / "sandbox" / "image" / f"{kind}.txt").open("a") as file:
        file.write("another-package\n")

    assert layer_name(kind, copy) != layer_name(kind, ROOT)
    assert image_name(copy, kind) != image_name(ROOT, kind)
    assert [image_name(copy, other) for other in others] == [image_name(ROOT, other) for other in others]
    assert image_name(copy) == image_name(ROOT)


def test_a_hub_has_the_four_images_and_those_of_its_operator() -> None:
    images = read_images('{"ruby": "boxes/ruby:3", "node": "boxes/node:22"}', python="boxes/python:1")

    assert images == {
        "python": "boxes/python:1",
        "browser": "",
        "node": "boxes/node:22",
        "git": "",
        "ruby": "boxes/ruby:3",
    }
    assert find_image("ruby", images) == "boxes/ruby:3"
    assert find_image("browser", images) == image_name(kind=BROWSER)


@pytest.mark.parametrize("text", ["[]", '{"ruby": 3}', '{"ruby": ""}', '{"Ruby": "x"}', "ruby"])
def test_a_setting_of_images_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_images(text)


def test_the_box_holds_every_module_that_the_sdk_imports_there() -> None:
    held = set(build_context())
    waiting = ["unitools/boxed.py", "unitools/universe.py", "unitools/runtime.py", "unitools/browser.py"]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += imported_by(ROOT / name)

    assert "unitools/dialects/drivers.py" in seen
    assert seen <= held


def imported_by(module: Path) -> list[str]:
    """The modules of unitools that are loaded with it: those imported for type checking only are not."""
    tree = ast.parse(module.read_text())
    found = [
        node for node in tree.body if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("unitools")
    ]
    names = [name for node in found for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))]
    places = [str(name).replace(".", "/") for name in names]
    paths = [path for place in places for path in (f"{place}.py", f"{place}/__init__.py")]
    return [path for path in paths if (ROOT / path).is_file()]
