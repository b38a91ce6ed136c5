"""The wheel of unitools: can an author write and run tools who has neither the hub nor Django?"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.installed_wheels import find_closure, install_wheels, read_name

ROOT = Path(__file__).resolve().parents[4]
PROJECT = tomllib.loads((ROOT / "packaging/unitools/pyproject.toml").read_text())
TOOL = '''
from unitools import Universe

u = Universe("acme.sums", version="1.0.0")


@u.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b
'''


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel, and of others what its metadata asks for."""
    needed = find_closure(read_name(each) for each in PROJECT["project"]["dependencies"])
    return install_wheels(tmp_path_factory.mktemp("wheel"), ["unitools"], needed)


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=False)


def test_every_part_of_the_sdk_is_in_the_wheel() -> None:
    parts = {
        path.parent.relative_to(ROOT).as_posix().replace("/", ".") for path in ROOT.glob("unitools/**/__init__.py")
    }

    assert set(PROJECT["tool"]["setuptools"]["packages"]) == parts


def test_pydantic_and_anyio_are_all_that_comes_along() -> None:
    needed = {re.split(r"[<>=]", each)[0] for each in PROJECT["project"]["dependencies"]}

    assert needed == {"pydantic", "anyio"}
    assert set(PROJECT["project"]["optional-dependencies"]) == {"hub", "capsules"}


@pytest.mark.req("UNI-1")
def test_a_tool_is_checked_and_run_where_there_is_no_hub(python: Path, tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(TOOL)
    unitools = python.with_name("unitools")

    checked = run(unitools, "check", "sums.py", "--local", folder=tmp_path)
    ran = run(unitools, "run", "sums.py", "add", '{"a": 2}', folder=tmp_path)

    assert (checked.returncode, checked.stderr) == (0, ""), checked
    assert "add: Add two numbers." in checked.stdout
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "3\n", "")
    for module in ("django", "jsonschema", "httpx2", "toolhub"):
        assert "ModuleNotFoundError" in run(python, "-c", f"import {module}", folder=tmp_path).stderr


@pytest.mark.parametrize("command", [["check"], ["push", "--hub", "http://127.0.0.1:1"]], ids=["check", "push"])
def test_what_needs_an_extra_names_it_and_answers_nothing(python: Path, tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "sums.py").write_text(TOOL)

    done = run(python.with_name("unitools"), *command, "sums.py", folder=tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert '"toolhub-unitools[hub]"' in done.stderr
