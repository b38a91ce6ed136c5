"""Command bring python: does an author see what is brought, before and after, and is nothing of others run unasked?"""

from __future__ import annotations

import json
import os
import pty
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.processes import ROOT
from tests.support.brought_objects import PLAIN, bring_python, read_manifests
from tests.support.wheels import make_wheel
from unitools.capsules import open_capsule, pack_capsule

if TYPE_CHECKING:
    from pathlib import Path

ASKS = '''
import os

KEY = os.environ["SHOP_KEY"]


def ask(word: str) -> str:
    """Ask https://api.example.org/v1."""
    return f"{word} {KEY} https://api.example.org/v1"
'''


@pytest.mark.req("BRING-4")
def test_a_module_alone_is_listed_and_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "heat.py").write_text(f"{PLAIN}\n\ndef _own(): ...\n")

    said = bring_python(tmp_path, "heat")

    assert said.returncode == 0, said.stderr
    assert said.stdout.splitlines() == [
        "heat has 1 tools and functions; choose with heat:NAME, again for more:",
        "  function   convert  Convert a temperature.",
    ]
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".py"] in ([], ["__pycache__"])


@pytest.mark.req("BRING-4")
def test_a_function_of_the_author_becomes_a_package_that_can_be_packed(tmp_path: Path) -> None:
    (tmp_path / "heat.py").write_text(PLAIN)

    said = bring_python(tmp_path, "heat:convert", "--effect", "None", "--group", "acme.heat")
    again = bring_python(tmp_path, "heat:convert", "--group", "acme.heat")

    assert said.returncode == 0, said.stderr
    assert said.stdout.startswith("acme.heat.convert 1.0.0  None, from heat:convert\n")
    folder = tmp_path / "acme_heat"
    manifest = read_manifests(folder)["convert"]
    assert manifest["input_schema"]["properties"]["celsius"] == {"type": "number", "description": "what is measured"}
    assert (folder / "source" / "heat.py").read_text() == PLAIN
    assert open_capsule(pack_capsule([manifest], folder).data).package == "acme_heat"
    assert "  nothing changed\n" in again.stdout
    assert read_manifests(folder)["convert"] == manifest


@pytest.mark.req("BRING-4")
def test_the_code_of_the_author_decides_the_version(tmp_path: Path) -> None:
    (tmp_path / "heat.py").write_text(PLAIN)
    bring_python(tmp_path, "heat:convert")
    (tmp_path / "heat.py").write_text(PLAIN.replace("+ 32", "+ 32.0"))

    said = bring_python(tmp_path, "heat:convert")

    assert "python.heat.convert 1.0.1" in said.stdout
    assert "origin.object_version_changed" in said.stdout


@pytest.mark.req("BRING-4")
def test_code_of_packages_is_run_only_where_the_author_says_so(tmp_path: Path) -> None:
    (tmp_path / "heat.py").write_text(PLAIN)

    for arguments in (["json:dumps"], ["heat:convert", "--package", "a-package"]):
        said = bring_python(tmp_path, *arguments)
        assert (said.returncode, "--run-here" in said.stderr) == (1, True), said.stderr


@pytest.mark.req("BRING-4")
def test_it_is_made_without_the_environment_of_this_machine_and_says_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(ASKS)

    said = bring_python(tmp_path, "shop:ask")

    assert said.returncode == 0, said.stderr
    assert "It cannot be made without SHOP_KEY, which is one of its secrets." in said.stdout
    assert "api.example.org is named at shop.py:9, and not reached: --host api.example.org" in said.stdout
    manifest = read_manifests(tmp_path / "python_shop")["ask"]
    assert [each["name"] for each in manifest["secrets"]] == ["SHOP_KEY"]
    assert "capabilities" not in manifest
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"of-this-machine" not in written
    assert str(tmp_path).encode() not in b"".join(
        path.read_bytes() for path in (tmp_path / "python_shop").rglob("*") if path.is_file()
    )


@pytest.mark.req("BRING-4")
def test_what_the_source_names_is_taken_where_the_author_says_so(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(ASKS)

    bring_python(tmp_path, "shop:ask", "--guess")

    manifest = read_manifests(tmp_path / "python_shop")["ask"]
    assert manifest["capabilities"] == {"net": [{"host": "api.example.org"}]}
    assert [(each["name"], each["hosts"]) for each in manifest["secrets"]] == [("SHOP_KEY", ["api.example.org"])]


@pytest.mark.req("BRING-4")
def test_an_object_that_is_gone_leaves_its_manifest(tmp_path: Path) -> None:
    (tmp_path / "heat.py").write_text(
        f"{PLAIN}\n\ndef melt(celsius: float) -> bool:\n    'Melt it.'\n    return celsius > 0\n"
    )
    bring_python(tmp_path, "heat:convert", "heat:melt")
    (tmp_path / "heat.py").write_text(PLAIN)

    said = bring_python(tmp_path, "heat:convert")

    assert (said.returncode, "There is no heat:melt any more" in said.stderr) == (2, True), said.stderr
    assert read_manifests(tmp_path / "python_heat")["melt"]["version"] == "1.0.0"
    assert read_manifests(tmp_path / "python_heat")["convert"]["version"] == "1.0.1"


@pytest.mark.req("BRING-4")
def test_a_module_of_a_package_is_imported_ahead_unless_it_reads_a_secret_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import os\nKEY = os.environ.get('SHOP_KEY')\ndef ask(word: str) -> str:\n    'Ask.'\n    return f'{word} {KEY}'\n"
    make_wheel(tmp_path / "wheels", "a-shop", "1.5", code=code)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    make_wheel(tmp_path / "wheels", "b-shop", "2.0")  # which nothing imports that is looked at
    bring = ("a_shop:ask", "--run-here", "--package", "a_shop", "--package", "B.Shop[x]")

    open_said = bring_python(tmp_path, *bring)
    ahead = (tmp_path / "python_a_shop" / "ask.py").read_text()
    bring_python(tmp_path, *bring, "--secret", "SHOP_KEY")
    later = (tmp_path / "python_a_shop" / "ask.py").read_text()

    assert "SHOP_KEY is read at a_shop.py:2" in open_said.stdout.replace("site/", ""), open_said.stderr
    manifest = read_manifests(tmp_path / "python_a_shop")["ask"]
    named = [each for each in manifest["dependencies"] if "shop" in each.lower()]
    assert sorted(named) == ["B.Shop[x]==2.0", "a_shop==1.5"]
    assert manifest["origin"]["object"] == {
        "name": "a_shop:ask",
        "framework": "function",
        "package": "a-shop",
        "version": "1.5",
    }
    assert "import a_shop as brought" in ahead
    assert 'load_object("a_shop:ask")' in later
    assert manifest["version"] == "2.0.0"  # tenants have to give it a secret


@pytest.mark.req("BRING-4")
@pytest.mark.parametrize(
    ("code", "name", "why"),
    [
        (
            "import a_module_that_nobody_has\ndef f() -> int: return 1",
            "f",
            "a_module_that_nobody_has did not come along",
        ),
        (
            "import subprocess\nsubprocess.run(['pip', 'install', 'x'])",
            "f",
            "without starting a program: pip install x",
        ),
        ("import os\nos.system('make')", "f", "without starting a program: make"),
        ("def f(x) -> int:\n    'Do.'\n    return 1", "f", "x"),
        ("def f(x: int) -> int:\n    return 1", "f", "Give the function a docstring"),
        ("class F:\n    'Do.'", "F", "a class of neither LangChain nor CrewAI"),
        ("raise ValueError('no')", "f", "ValueError: no"),
        ("", "f", "has no attribute 'f'"),
        ("import sys\nsys.exit(3)", "f", "SystemExit: 3"),
    ],
)
def test_what_cannot_be_brought_says_why_and_what_to_do(tmp_path: Path, code: str, name: str, why: str) -> None:
    (tmp_path / "shop.py").write_text(code)

    said = bring_python(tmp_path, f"shop:{name}")

    assert (said.returncode, why in said.stderr) == (2, True), said.stderr
    assert not (tmp_path / "python_shop").exists()


@pytest.mark.req("BRING-4")
def test_a_process_that_ends_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("import os\nprint('I end.', flush=True)\nos._exit(0)")

    said = bring_python(tmp_path, "shop:f")

    assert said.returncode == 1
    assert "ended before it could say what it saw" in said.stderr
    assert "I end." in said.stderr


@pytest.mark.req("BRING-4")
def test_at_a_terminal_effect_hosts_and_secrets_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(ASKS.replace("environ[", "environ.get(").replace('"SHOP_KEY"]', '"SHOP_KEY")'))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        command = [sys.executable, "-m", "unitools", "bring", "python", "shop:ask"]
        os.execve(sys.executable, command, {**os.environ, "PYTHONPATH": str(ROOT)})
    shown = ""
    for question, answer in (
        ("Is it a secret of the tenant? [y/N]", "y"),
        ("May the tools reach it? [y/N]", "n"),
        ("What does shop:ask do outside?", "Read"),
    ):
        while question not in shown:
            shown += os.read(terminal, 4096).decode()
        os.write(terminal, f"{answer}\n".encode())
    while more := _read(terminal):
        shown += more.decode()
    os.close(terminal)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, shown
    manifest = read_manifests(tmp_path / "python_shop")["ask"]
    assert (manifest["side_effect"], [each["name"] for each in manifest["secrets"]]) == ("Read", ["SHOP_KEY"])
    assert "capabilities" not in manifest
    kept = json.loads((tmp_path / "python_shop" / "as_brought.json").read_text())["objects"]["shop:ask"]
    assert kept["choices"]["effect"] == "Read"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other end is closed
        return b""
