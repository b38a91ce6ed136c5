"""Legacy catalogue: do catalogues of the older tool service become manifests and a package (SVC-2)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from unitools.legacy_catalogue import CatalogueError, read_catalogue

if TYPE_CHECKING:
    from pathlib import Path

SEARCH: dict[str, Any] = {
    "tool_id": "Web-Search",
    "description": "Searches.",
    "implementation_path": "tools/web_search.py",
    "parameters_schema": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    "requires_sandbox": True,
    "timeout_seconds": 2.5,
    "dependencies": ["idna==3.10"],
    "owner": "somebody",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        "tools/web_search.py",
        "tools/other.py",
        "whole/__init__.py",
        "whole/deep/__init__.py",
        "whole/deep/a.py",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def run(**given): return given\n")
    return tmp_path


@pytest.mark.req("SVC-2")
@pytest.mark.parametrize(
    "document",
    [[SEARCH], {"capabilities": [SEARCH]}, {"tools": {"Web-Search": SEARCH}}, {"Web-Search": SEARCH}],
    ids=["a list", "under capabilities", "under tools by id", "by id"],
)
def test_a_catalogue_becomes_valid_manifests_and_the_files_that_they_name(document: Any, folder: Path) -> None:
    made = read_catalogue(document, folder, group="old.tools", version="2.0.0")

    (manifest,) = made.manifests
    assert made.errors == ()
    assert (manifest["id"], manifest["version"], manifest["timeout_ms"]) == ("old.tools.web_search", "2.0.0", 2500)
    assert manifest["input_schema"] == SEARCH["parameters_schema"]
    assert manifest["dependencies"] == ["idna==3.10"]
    assert manifest["implementation"] == {"module": "old_tools.web_search", "entry": "run"}
    assert set(made.files) == {"old_tools/__init__.py", "old_tools/web_search.py"}
    assert made.names == {"old.tools.web_search": "Web-Search"}
    assert [(each.pointer, each.severity) for each in made.findings] == [("/owner", "warning")]


@pytest.mark.req("SVC-2")
def test_a_module_of_a_python_package_brings_the_package_under_its_own_name(folder: Path) -> None:
    made = read_catalogue([SEARCH | {"implementation_path": "whole.deep.a"}], folder, group="old.tools")

    assert made.package == "whole"
    assert made.manifests[0]["implementation"]["module"] == "whole.deep.a"
    assert set(made.files) == {"whole/__init__.py", "whole/deep/__init__.py", "whole/deep/a.py"}


@pytest.mark.parametrize("path", ["old_tools.py", "old_tools", "old_tools/sub/search.py"])
def test_a_file_travels_in_the_groups_folder_whatever_it_lay_in(path: str, tmp_path: Path) -> None:
    name = path.removesuffix(".py")
    file = tmp_path / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("def run(**given): return given\n")

    made = read_catalogue([SEARCH | {"implementation_path": path}], tmp_path, group="old.tools")

    word = name.rpartition("/")[2]
    assert made.manifests[0]["implementation"]["module"] == f"old_tools.{word}"
    assert set(made.files) == {"old_tools/__init__.py", f"old_tools/{word}.py"}
    assert made.places == {"Web-Search": f"{name}.py:1"}


def test_a_file_beside_a_package_of_its_name_is_told_from_it(folder: Path) -> None:
    (folder / "whole.py").write_text("def run(**given): return given\n")
    both = [SEARCH | {"tool_id": path, "implementation_path": path} for path in ("whole", "whole.deep.a")]

    with pytest.raises(CatalogueError, match=r"several packages \(whole, whole\.py\)"):
        read_catalogue(both, folder, group="old.tools")


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../secret.py",
        "tools/missing.py",
        "Tools/x.py",
        "tools/web search.py",
        "link/x.py",
        "whole/__pycache__/a.py",
    ],
)
def test_a_path_that_is_no_module_below_the_folder_is_named(path: str, folder: Path) -> None:
    (folder / "whole" / "__pycache__").mkdir()
    (folder / "whole" / "__pycache__" / "a.py").write_text("")
    outside = folder.parent / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "x.py").write_text("")
    if not (folder / "link").exists():
        (folder / "link").symlink_to(outside)

    made = read_catalogue([SEARCH | {"implementation_path": path}], folder, group="old.tools")

    assert [each.pointer for each in made.errors] == ["/implementation"]
    assert made.manifests == ()


@pytest.mark.parametrize("name", ["Echo", "Echo, twice"])
def test_the_name_of_an_old_entry_is_what_people_read(name: str, folder: Path) -> None:
    made = read_catalogue([SEARCH | {"name": name}], folder, group="old.tools")

    assert made.errors == ()
    assert made.manifests[0]["display_name"] == name
    assert "name" not in made.manifests[0]
    assert [each.pointer for each in made.findings] == ["/owner"]


def test_two_tools_with_one_id_are_named_both(folder: Path) -> None:
    made = read_catalogue([SEARCH, SEARCH | {"tool_id": "web_search"}], folder, group="old.tools")

    assert "Web-Search and web_search would both be old.tools.web_search" in made.errors[0].message


def test_what_the_schema_refuses_is_found_before_a_hub_says_it(folder: Path) -> None:
    made = read_catalogue([SEARCH | {"timeout_seconds": "soon", "tags": ["Not A Tag"]}], folder, group="old.tools")

    assert {each.pointer for each in made.errors} == {"/timeout_ms", "/tags/0"}


@pytest.mark.parametrize("document", [None, [], {}, [1], "x", {"tools": 7}, [{"description": "no id"}]], ids=repr)
def test_what_is_no_catalogue_is_refused_with_a_sentence(document: Any, folder: Path) -> None:
    with pytest.raises(CatalogueError, match="catalogue"):
        read_catalogue(document, folder, group="old.tools")


def test_tools_of_several_packages_are_refused(folder: Path) -> None:
    with pytest.raises(CatalogueError, match="One package travels at a time"):
        read_catalogue(
            [SEARCH, SEARCH | {"tool_id": "b", "implementation_path": "whole/deep/a.py"}], folder, group="old.tools"
        )


@pytest.mark.parametrize("group", ["", "one", "a.b.c", "A.b", "a.b-c"])
def test_a_group_that_no_hub_takes_is_refused(group: str, folder: Path) -> None:
    with pytest.raises(ValueError, match="no name for tools"):
        read_catalogue([SEARCH], folder, group=group)
