"""Can what a remedy says be done at every door? A model over MCP sends no HTTP request."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from toolhub.kernel.problems import catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
HTTP = re.compile(r"\b(GET|POST|PUT|PATCH|DELETE|HEAD)\b|/api/|\bPrefer:")


def text_of(node: ast.expr) -> str:
    return " ".join(
        each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )


def remedies() -> Iterator[tuple[str, str]]:
    """Every remedy that is written in the packages whose problems a call can meet, with where it stands."""
    for folder in ("access", "evidence", "invocations", "registry"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    for keyword in node.keywords:
                        if keyword.arg == "remedy":
                            yield f"{path.relative_to(ROOT)}:{node.lineno}", text_of(keyword.value)


@pytest.mark.req("TOOLS-24")
def test_no_remedy_names_an_http_request() -> None:
    found = dict(remedies())

    assert len(found) > 100
    assert {where: said for where, said in found.items() if HTTP.search(said)} == {}


@pytest.mark.req("TOOLS-24")
def test_no_cure_of_the_catalogue_names_an_http_request() -> None:
    assert {cls.reason: cls.cure for cls in catalogue() if HTTP.search(cls.cure)} == {}
