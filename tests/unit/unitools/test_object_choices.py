"""Command bring python, its choices: does what is said of one object stay with it, and is nothing of a person's written over?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brought_objects import bring_python, read_manifests
from unitools.command.object_record import read_record
from unitools.command.terminal import CannotRun

if TYPE_CHECKING:
    from pathlib import Path

TWO = """
def f(word: str) -> str:
    'Say it.'
    return word


def g(word: str) -> str:
    'Say it again.'
    return word * 2
"""


def reach_of(manifest: dict[str, Any]) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """Its secrets with their hosts, and the hosts that it reaches."""
    hosts = [each["host"] for each in manifest.get("capabilities", {}).get("net", ())]
    return [(each["name"], each["hosts"]) for each in manifest.get("secrets", ())], hosts


@pytest.mark.req("BRING-4")
def test_an_effect_is_of_the_objects_that_a_run_names_and_no_later_one_inherits_it(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TWO)

    bring_python(tmp_path, "shop:f", "--effect", "None")
    bring_python(tmp_path, "shop:g")

    assert {name: each["side_effect"] for name, each in read_manifests(tmp_path / "python_shop").items()} == {
        "f": "None",
        "g": "Write",
    }
    kept = json.loads((tmp_path / "python_shop" / "as_brought.json").read_text())["objects"]
    assert {name: each["choices"]["effect"] for name, each in kept.items()} == {"shop:f": "None", "shop:g": ""}


@pytest.mark.req("BRING-4")
def test_secrets_and_hosts_of_one_object_are_given_to_no_other(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TWO)

    bring_python(tmp_path, "shop:f", "--secret", "A_KEY", "--host", "a.example.org", "--environment", "REGION=eu")
    bring_python(tmp_path, "shop:g", "--secret", "B_KEY", "--host", "b.example.org")
    once = read_manifests(tmp_path / "python_shop")
    bring_python(tmp_path, "shop:f")

    assert reach_of(once["f"]) == ([("A_KEY", ["a.example.org"])], ["a.example.org"])
    assert reach_of(once["g"]) == ([("B_KEY", ["b.example.org"])], ["b.example.org"])
    assert read_manifests(tmp_path / "python_shop") == once
    assert ("REGION" in (tmp_path / "python_shop" / "f.py").read_text()) is True
    assert ("REGION" in (tmp_path / "python_shop" / "g.py").read_text()) is False


@pytest.mark.req("BRING-4")
def test_a_source_file_that_a_person_wrote_survives_the_loss_of_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TWO)
    bring_python(tmp_path, "shop:f")
    folder = tmp_path / "python_shop"
    mine = (folder / "f.py").read_text().replace("return load_object", "return  load_object")
    (folder / "f.py").write_text(mine)
    (folder / "__init__.py").write_text("# mine\n")
    (folder / "g.py").write_text("# mine\n")
    (folder / "manifests" / "python.shop.f.json").unlink()

    said = bring_python(tmp_path, "shop:f", "shop:g")

    assert said.returncode == 0, said.stderr
    assert [(folder / f"{each}.py").read_text() for each in ("f", "__init__", "g")] == [mine, "# mine\n", "# mine\n"]
    assert "g.py is left as it is. What is made otherwise:" in said.stdout


@pytest.mark.req("BRING-4")
def test_a_folder_of_code_that_was_not_brought_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TWO)
    (tmp_path / "python_shop").mkdir()
    (tmp_path / "python_shop" / "f.py").write_text("# mine\n")

    said = bring_python(tmp_path, "shop:f")

    assert (said.returncode, "holds Python files that were not brought" in said.stderr) == (1, True), said.stderr
    assert [each.name for each in (tmp_path / "python_shop").iterdir()] == ["f.py"]


@pytest.mark.req("BRING-4")
def test_a_file_that_the_module_has_no_more_does_not_travel(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text(TWO)
    (tmp_path / "shop" / "parts.py").write_text("A = 1\n")
    bring_python(tmp_path, "shop:f")
    (tmp_path / "shop" / "parts.py").unlink()
    (tmp_path / "python_shop" / "source" / "mine.py").write_text("A = 2\n")

    said = bring_python(tmp_path, "shop:f")

    assert said.returncode == 0, said.stderr
    source = tmp_path / "python_shop" / "source"
    assert sorted(each.relative_to(source).as_posix() for each in source.rglob("*.py")) == [
        "mine.py",
        "shop/__init__.py",
    ]


def put(folder: Path, record: Any, manifest: Any = None) -> Path:
    """A folder as it comes with a repository."""
    (folder / "manifests").mkdir(parents=True)
    (folder / "as_brought.json").write_text(json.dumps(record))
    if manifest is not None:
        (folder / "manifests" / "python.shop.f.json").write_text(json.dumps(manifest))
    return folder


CODE = 'X"]=1;import evil #'
NAMED = {"id": "python.shop.f", "version": "1.0.0", "origin": {"object": {"name": "shop:f"}}}


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    "record",
    [
        [],
        {"objects": []},
        {"objects": {"shop:f": []}},
        {"objects": {CODE: {}}},
        {"objects": {"shop:f": {"made": [], "source": "x"}}},
        {"packages": ["--index-url=https://example.org"]},
        {"packages": [1]},
        {"constraints": ["-r\nother.txt"]},
        *(
            {"objects": {"shop:f": {"choices": each}}}
            for each in (
                {"environment": {CODE: "1"}},
                {"environment": {"X": 1}},
                {"environment": ["X"]},
                {"injected": {CODE: "config.user"}},
                {"secrets": [CODE]},
                {"secrets": [1]},
                {"hosts": [1]},
                {"effect": "Nothing"},
            )
        ),
    ],
)
def test_a_record_that_no_run_has_written_is_refused(tmp_path: Path, record: Any) -> None:
    with pytest.raises(CannotRun, match=r"as_brought\.json is not as `unitools bring python` writes it"):
        read_record(put(tmp_path / "python_shop", record))


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    "manifest",
    [
        [],
        {"origin": {"object": {"name": "shop:f"}}},
        NAMED | {"id": 1},
        NAMED | {"origin": []},
        NAMED | {"origin": {"object": {"framework": "function"}}},
        NAMED | {"origin": {"object": {"name": f"shop:{CODE}"}}},
    ],
)
def test_a_manifest_of_no_object_that_says_it_is_one_is_refused(tmp_path: Path, manifest: Any) -> None:
    with pytest.raises(CannotRun, match=r"python\.shop\.f\.json is no manifest of an object"):
        read_record(put(tmp_path / "python_shop", {}, manifest))


@pytest.mark.req("BRING-4")
def test_what_a_run_has_written_is_read_again(tmp_path: Path) -> None:
    choices = {"effect": "Read", "secrets": ["A_KEY"], "hosts": ["a.example.org"], "environment": {"REGION": "eu"}}
    record = {"packages": ["a-shop[x]==1.0"], "constraints": ["b<2"], "objects": {"shop:f": {"choices": choices}}}

    found = read_record(put(tmp_path / "python_shop", record, NAMED))

    assert (found.references, found.packages, found.constraints) == (["shop:f"], ["a-shop[x]==1.0"], ["b<2"])
    said = found.choices["shop:f"]
    assert (said.effect, said.secrets, said.hosts, said.environment) == (
        "Read",
        ("A_KEY",),
        ("a.example.org",),
        {"REGION": "eu"},
    )
    assert read_record(put(tmp_path / "other", {}, {"id": "a.b.c", "origin": {"url": "x"}})).manifests == []


LESS = TWO[: TWO.index("def g")]


@pytest.mark.req("BRING-4")
def test_an_object_that_was_gone_for_a_while_comes_back_with_what_a_person_wrote(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TWO)
    bring_python(tmp_path, "shop:f", "shop:g", "--secret", "A_KEY", "--effect", "Read")
    place = tmp_path / "python_shop" / "manifests" / "python.shop.g.json"
    mine = json.loads(place.read_text()) | {"description": "My words."}
    place.write_text(json.dumps(mine))

    (tmp_path / "shop.py").write_text(LESS)
    gone = bring_python(tmp_path, "shop:f")
    (tmp_path / "shop.py").write_text(TWO)
    back = bring_python(tmp_path, "shop:f")

    assert (gone.returncode, back.returncode) == (2, 0), back.stderr
    assert json.loads(place.read_text()) == mine


@pytest.mark.req("BRING-4")
def test_the_authors_module_that_is_gone_takes_its_objects_along(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TWO)
    (tmp_path / "more.py").write_text(TWO)
    bring_python(tmp_path, "shop:f", "more:g")
    (tmp_path / "more.py").unlink()

    said = bring_python(tmp_path, "shop:f")

    assert (said.returncode, "There is no more:g any more" in said.stderr) == (2, True), said.stderr


@pytest.mark.req("BRING-4")
def test_a_secret_is_not_written_into_the_source_file(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TWO)

    said = bring_python(tmp_path, "shop:f", "--environment", "SHOP_API_KEY=k3y-of-the-author")

    assert (said.returncode, "Say --secret SHOP_API_KEY" in said.stderr) == (1, True), said.stderr
    assert "k3y-of-the-author" not in said.stderr
    assert not (tmp_path / "python_shop").exists()


@pytest.mark.req("BRING-4")
def test_a_tool_that_is_called_otherwise_now_leaves_a_manifest_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(f"{LESS}\n\nf.__name__ = 'find'\n")
    bring_python(tmp_path, "shop:f")
    (tmp_path / "shop.py").write_text(f"{LESS}\n\nf.__name__ = 'search'\n")

    said = bring_python(tmp_path, "shop:f")

    assert said.returncode == 2
    assert "shop:f is called otherwise now, and has become python.shop.search." in said.stderr
    assert "The manifest of python.shop.find is left as it is" in said.stderr


@pytest.mark.req("BRING-4")
def test_a_module_of_the_author_that_does_not_travel_is_told(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(f"import helpers\nimport json\nimport pydantic\n{TWO}")
    (tmp_path / "helpers.py").write_text("")

    said = bring_python(tmp_path, "shop:f")

    assert said.stdout.count("which does not travel") == 1, said.stderr
    assert "It imports helpers, which no package brings" in said.stdout
