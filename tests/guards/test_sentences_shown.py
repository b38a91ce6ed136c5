"""Sentences: does each page say what a service has refused in its own language?"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("access", "evidence", "invocations", "kernel", "registry", "toolhub")
MODULES = [
    path for package in PACKAGES for name in ("pages.py", "forms.py") for path in sorted((ROOT / package).rglob(name))
]
TEMPLATES = [path for package in (*PACKAGES, "templates") for path in sorted((ROOT / package).rglob("*.html"))]
SAYS = {"translate_sentence", "describe_problem"}


def find_untranslated(tree: ast.Module) -> list[int]:
    """The lines on which the words of a problem, or of a finding of it, are not given to what translates them."""
    given = {
        id(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SAYS
        for argument in node.args
    }
    said = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in ("detail", "remedy"))
        or (isinstance(node, ast.Subscript) and ast.unparse(node) == "finding['message']")
    ]
    return [node.lineno for node in said if id(node) not in given]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_translates_the_words_of_a_problem(path: Path) -> None:
    assert find_untranslated(ast.parse(path.read_text())) == []


def test_a_template_translates_the_words_of_a_problem() -> None:
    odd = re.compile(r"\{\{ *(?:[\w.]*problem\.(?:detail|remedy|message)|finding\.message)\b(?!\|sentence)")

    assert {str(path.relative_to(ROOT)) for path in TEMPLATES if odd.search(path.read_text())} == set()
