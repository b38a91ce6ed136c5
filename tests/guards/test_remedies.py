"""Remedies: can what a remedy says be done at every door? A model over MCP sends no HTTP request."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from access.oauth.tokens import REMEDY
from kernel.problems import collect_problem_classes
from tests.support.remedies import HTTP, OF_EXCHANGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
PACKAGES = ("access", "evidence", "invocations", "llm", "registry", "toolhub")  # whose problems a call can meet
WORD = "remedy"
# Refused while a connection is read, where no call is known yet.
BEFORE_A_CALL = "kernel/http/uvicorn_protocol.py"


def text_of(node: ast.expr, constants: dict[str, str]) -> str:
    """Every text in it, those of the module's constants that it names included."""
    said = []
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            said.append(each.value)
        elif isinstance(each, ast.Name):
            said.append(constants.get(each.id, ""))
    return " ".join(said)


def modules() -> tuple[dict[str, ast.Module], dict[str, int]]:
    """Those that write remedies, and :func:`places_of` them: the others are not parsed."""
    paths = [path for folder in PACKAGES for path in sorted((ROOT / folder).rglob("*.py"))]
    sources = {str(path.relative_to(ROOT)): path.read_text() for path in paths}
    found = {path: ast.parse(source) for path, source in sources.items() if WORD in source}
    places = places_of(found.values())
    by_place = re.compile(rf"\b(?:{'|'.join(places)})\b")
    more = {
        path: ast.parse(source) for path, source in sources.items() if path not in found and by_place.search(source)
    }
    return found | more, places


def constants_of(module: ast.Module) -> dict[str, str]:
    return {
        target.id: text_of(node.value, {})
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def places_of(found: Iterable[ast.Module]) -> dict[str, int]:
    """Functions that take a remedy by its place, with the place."""
    return {
        node.name: names.index(WORD)
        for module in found
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef)
        if WORD in (names := [each.arg for each in (*node.args.posonlyargs, *node.args.args)])
    }


@cache
def remedies() -> list[tuple[str, str]]:
    return list(find_remedies())


def find_remedies() -> Iterator[tuple[str, str]]:
    """Every remedy that is written there, by its name or by its place or made by a function for it, with where it stands."""
    found, places = modules()
    for path, module in found.items():
        constants = constants_of(module)
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef) and WORD in node.name:
                for each in ast.walk(node):
                    if isinstance(each, ast.Return) and each.value is not None:
                        yield f"{path}:{each.lineno}", text_of(each.value, constants)
            if not isinstance(node, ast.Call):
                continue
            where = f"{path}:{node.lineno}"
            for keyword in node.keywords:
                if keyword.arg == WORD:
                    yield where, text_of(keyword.value, constants)
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in places and len(node.args) > places[name]:
                yield where, text_of(node.args[places[name]], constants)


@pytest.mark.req("TOOLS-24")
def test_no_remedy_names_what_only_http_has() -> None:
    found = remedies()

    assert len(found) > 200
    wrong = [(where, said) for where, said in found if HTTP.search(said)]
    assert [each for each in wrong if not each[0].startswith(BEFORE_A_CALL)] == []


def test_remedies_that_are_told_by_place_or_by_a_constant_are_found_too() -> None:
    said = {text for _, text in remedies()}

    assert "Wait `retry_after_s` seconds, and send a valid key." in said  # access/budgets/rate_limits.py, by its place
    assert REMEDY in said


@pytest.mark.req("TOOLS-24")
def test_no_cure_of_the_catalogue_names_what_only_http_has() -> None:
    found = {cls.reason: cls.cure for cls in collect_problem_classes() if HTTP.search(cls.cure)}

    assert {reason: cure for reason, cure in found.items() if reason not in OF_EXCHANGES} == {}
    assert {cls.reason for cls in collect_problem_classes()} >= OF_EXCHANGES
