"""Entries: is there the function that a manifest names, and could it be called with the arguments of the tool's schema?

The source is read and never imported. What only running tells (a name that was imported or assigned, what a decorator makes of a
function) is left to the first call.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.manifest import Manifest

Function = ast.FunctionDef | ast.AsyncFunctionDef


def entry_problem(source: bytes, manifest: Manifest) -> str:
    """What is wrong with the entry of a manifest in the source of its module; empty when nothing is."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return f"The module {manifest.module!r} is not Python that can be read: {error}."
    found = [node for node in _top_level(tree.body) if manifest.entry in _names_of(node)]
    if not found:
        if any(isinstance(node, ast.ImportFrom) and _takes_all(node) for node in _top_level(tree.body)):
            return ""
        return f"The module {manifest.module!r} has no function {manifest.entry!r}."
    last = found[-1]
    if isinstance(last, ast.ClassDef):
        return f"{manifest.entry!r} of {manifest.module!r} is a class; the entry is a function."
    if isinstance(last, (ast.Assign, ast.AnnAssign)) and isinstance(last.value, (ast.Constant, ast.List, ast.Dict)):
        return f"{manifest.entry!r} of {manifest.module!r} is a value; the entry is a function."
    if isinstance(last, Function) and not last.decorator_list:
        return _unfit(last, manifest)
    return ""


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that bind names of the module, also those that a condition or a `try` stands around."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try, ast.With, ast.For, ast.While)):
            for part in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                yield from _top_level(handler.body)


def _names_of(node: ast.stmt) -> set[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return {each.asname or each.name.partition(".")[0] for each in names}
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            return {
                each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
    return set()


def _takes_all(node: ast.ImportFrom) -> bool:
    return any(each.name == "*" for each in node.names)


def _unfit(function: Function, manifest: Manifest) -> str:
    """It is called with the arguments by their names."""
    takes, name = function.args, f"The function {manifest.entry!r} of {manifest.module!r}"
    schema = manifest.input_schema
    properties = schema.get("properties", {})
    unset = len(takes.posonlyargs) + len(takes.args) - len(takes.defaults)
    if nameless := takes.posonlyargs[: max(unset, 0)]:
        return f"{name} takes {nameless[0].arg!r} by its place only; arguments come by their names."
    known = {each.arg for each in (*takes.args, *takes.kwonlyargs)}
    if takes.kwarg is None and (missing := [each for each in properties if each not in known]):
        return f"{name} has no parameter {missing[0]!r}, which the input schema names."
    needed = [each.arg for each in takes.args[: max(unset - len(takes.posonlyargs), 0)]]
    needed += [each.arg for each, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if default is None]
    never = [each for each in needed if each not in properties]
    if never and schema.get("additionalProperties") is False:
        return f"{name} needs {never[0]!r}, which the input schema does not have."
    return ""
