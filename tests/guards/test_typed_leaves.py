"""Facts say what they say in the type of their kind (evidence/leaves): no service records a dict."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("access", "evidence", "invocations", "registry", "toolhub")


def _holds_dict(node: ast.expr, names: dict[str, ast.expr]) -> bool:
    """Whether an argument is a dict: written there, joined from several, or put into a name before."""
    match node:
        case ast.Dict() | ast.DictComp() | ast.BinOp(op=ast.BitOr()):
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return _holds_dict(body, names) or _holds_dict(orelse, names)
        case ast.Name(id=name) if name in names:
            return _holds_dict(names[name], {})
    return False


def find_raw_facts(source: str) -> list[int]:
    """The lines at which a function records a dict."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        names: dict[str, ast.expr] = {}
        for node in ast.walk(function):
            match node:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    names[name] = value
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Attribute(attr="record" | "_record") | ast.Name(id="record" | "_record")):
                    # Helpers take it by position; ``record`` of a metric has labels there.
                    positional = [] if isinstance(node.func, ast.Attribute) else node.args
                    given = [each.value for each in node.keywords if each.arg == "data"] + positional
                    found += [node.lineno for each in given if _holds_dict(each, names)]
    return found


def test_no_service_records_a_dict() -> None:
    raw = {
        str(file.relative_to(ROOT))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if find_raw_facts(file.read_text())
    }

    assert raw == set()


def test_a_dict_is_found_however_it_is_passed() -> None:
    assert find_raw_facts('def f():\n    evidence.record(kind=k, data={"a": 1})') == [2]
    assert find_raw_facts('def f():\n    said = {"a": 1}\n    evidence.record(kind=k, data=said | {"b": 2})') == [3]
    assert find_raw_facts('def f():\n    said: dict = {"a": 1}\n    evidence.record(kind=k, data=said)') == [3]
    assert find_raw_facts("def f():\n    evidence.record(kind=k, data=Created(a=1))") == []
