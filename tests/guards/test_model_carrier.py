"""The carrier of models: does the program use of the carrier of models what it was taken for, and does nothing that is installed
run by itself?
"""

from __future__ import annotations

import ast
import re
import sysconfig
from pathlib import Path

import pytest

from tests.support.source_files import list_source_files

ROOT = Path(__file__).resolve().parents[2]
# What speaks to providers. Agents, tools, graphs, MCP and whatever else the distribution has is not for us.
USED = re.compile(
    r"pydantic_ai\.(models|providers|profiles)(\.\w+)*|pydantic_ai\.(direct|messages|settings|exceptions)"
)
# Files that Python runs at every start. A stolen release of another library of this kind brought one that read all secrets.
STARTED = {"distutils-precedence.pth"}  # of setuptools


def find_imports(path: Path) -> set[str]:
    """The modules that a file names in its imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
    return found


def of_carrier(path: Path) -> set[str]:
    if "pydantic_" not in path.read_text():  # reading takes a hundredth of parsing
        return set()
    return {each for each in find_imports(path) if each.split(".")[0] in {"pydantic_ai", "pydantic_graph"}}


@pytest.mark.req("LLM-1")
def test_of_the_carrier_only_its_models_are_used_and_only_by_providers() -> None:
    files = [path for path in list_source_files() if path.suffix == ".py"]
    users = {path.relative_to(ROOT).as_posix(): names for path in files if (names := of_carrier(path))}

    product = {path: names for path, names in users.items() if not path.startswith(("tests/", "bench/probes/"))}
    assert product
    assert all(path.startswith("llm/providers/") for path in product)
    assert [name for names in product.values() for name in names if not USED.fullmatch(name)] == []


@pytest.mark.parametrize("name", ["pydantic_ai.agent", "pydantic_ai", "pydantic_ai.mcp", "pydantic_ai.models_else"])
def test_the_rest_of_the_carrier_would_be_refused(name: str) -> None:
    assert not USED.fullmatch(name)


def test_no_file_of_a_package_runs_at_every_start_of_python() -> None:
    installed = Path(sysconfig.get_path("purelib"))

    assert {path.name for path in installed.glob("*.pth")} <= STARTED
