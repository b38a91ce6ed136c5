"""Entries: whether the function that a manifest names is there, and could be called with the tool's arguments.

The source is read and never imported, and a manifest is refused for what is certain only. What only running tells (a name that was
imported or assigned, what a decorator makes of a function, which branch is taken) is left to the first call.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.manifest import Manifest

MAX_MODULE_BYTES = 256 * 1024  # a tree of what is larger would take a good part of a hub's memory
MODULES_KEPT = 8  # the tools of a capsule share a module or two
_PARTS = ("body", "handlers", "orelse", "finalbody", "cases")
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_DYNAMIC = {"globals", "locals", "vars", "setattr", "exec", "eval"}
_DYNAMIC_ATTRIBUTES = {"modules", "__dict__", "__setattr__"}


@dataclass(frozen=True, slots=True)
class _Signature:
    """``positional``: what has to be given by its place. ``needed``: what has no default."""

    positional: tuple[str, ...]
    names: frozenset[str]
    needed: tuple[str, ...]
    takes_all: bool


@dataclass(frozen=True, slots=True)
class _Binding:
    """``certain``: nothing stands around it that could pass it over. Without ``what`` and ``signature`` only running tells."""

    line: int
    certain: bool
    what: str = ""  # "class" or "value": what is no function
    signature: _Signature | None = None


@dataclass(frozen=True, slots=True)
class _Module:
    """``is_open``: names may be bound that nothing here shows. ``problem``: why it cannot be read."""

    bindings: dict[str, list[_Binding]]
    is_open: bool = False
    problem: str = ""


def entry_problem(source: bytes, manifest: Manifest) -> str:
    """What is wrong with the entry of a manifest in the source of its module; empty when nothing is for certain."""
    named = f"The module {manifest.module!r}"
    if len(source) > MAX_MODULE_BYTES:
        return (
            f"{named} has {len(source):,} bytes; the module of an entry has at most {MAX_MODULE_BYTES:,}. "
            "Move the rest into other modules of the package, and import it from there."
        )
    module = _read(source)
    if module.problem:
        return f"{named} {module.problem}"
    if module.is_open:
        return ""
    found = module.bindings.get(manifest.entry)
    if not found:
        return "" if "__getattr__" in module.bindings else f"{named} has no function {manifest.entry!r}."
    last = max((place for place, each in enumerate(found) if each.certain), default=0)
    problems = [_unfit(each, manifest) for each in found[last:]]
    return problems[-1] if all(problems) else ""


def line_of_entry(source: bytes, name: str) -> int:
    """Where a module binds a name, the last time; 0 when that cannot be said."""
    found = _read(source).bindings.get(name) if len(source) <= MAX_MODULE_BYTES else None
    return found[-1].line if found else 0


@lru_cache(maxsize=MODULES_KEPT)
def _read(source: bytes) -> _Module:
    """What a module binds. The tree is not kept: it is a thousand times the size of this."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return _Module({}, problem=f"is not Python that can be read: {error}.")
    except (RecursionError, MemoryError):
        return _deep(source)
    bindings: dict[str, list[_Binding]] = {}
    for statement, certain in _top_level(tree.body):
        for name, what, signature in _bound(statement):
            bindings.setdefault(name, []).append(_Binding(statement.lineno, certain, what, signature))
    is_open = False
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name):
                is_open |= name in _DYNAMIC
            case ast.Attribute(attr=name):
                is_open |= name in _DYNAMIC_ATTRIBUTES
            case ast.ImportFrom(names=names):
                is_open |= any(each.name == "*" for each in names)
            case ast.Global(names=declared):
                for name in declared:
                    bindings.setdefault(name, []).append(_Binding(node.lineno, certain=False))
    return _Module(bindings, is_open)


def _deep(source: bytes) -> _Module:
    """Python compiles some of what it makes no tree of."""
    try:
        compile(source, "<module>", "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        return _Module(
            {}, problem="is nested too deeply: Python cannot compile it. Write it in more and shorter steps."
        )
    except (SyntaxError, ValueError) as error:
        return _Module({}, problem=f"is not Python that can be read: {error}.")
    return _Module({}, is_open=True)


def _top_level(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of the module's own scope, in order; False for those that a condition or a `try` stands around."""
    waiting = [(each, True) for each in reversed(body)]
    while waiting:
        node, certain = waiting.pop()
        yield node, certain
        if isinstance(node, _SCOPES):
            continue
        inner: list[ast.stmt] = []
        for part in _PARTS:
            for each in getattr(node, part, ()):
                inner += each.body if isinstance(each, (ast.ExceptHandler, ast.match_case)) else [each]
        waiting += [(each, False) for each in reversed(inner)]


def _bound(node: ast.stmt) -> Iterator[tuple[str, str, _Signature | None]]:
    """The names that a statement binds itself, without those around which it stands."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name, "", None if node.decorator_list else _signature(node.args)
        case ast.ClassDef():
            yield node.name, "" if node.decorator_list else "class", None
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for each in names:
                yield each.asname or each.name.partition(".")[0], "", None
        case ast.AnnAssign(value=None):
            pass  # a type, and no value
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.AnnAssign(target=ast.Name(id=name), value=value)
        ):
            yield name, "value" if isinstance(value, (ast.Constant, ast.List, ast.Dict)) else "", None
            for inner in _stored(value):
                yield inner, "", None
        case _:
            for inner in _stored(node):
                yield inner, "", None


def _stored(node: ast.AST | None) -> Iterator[str]:
    """Names that an expression, a target or a pattern binds: `run := …`, `as run`, `case run`."""
    waiting = [node] if node else []
    while waiting:
        match each := waiting.pop():
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                yield name
        children = (each.iter, *each.ifs) if isinstance(each, ast.comprehension) else ast.iter_child_nodes(each)
        waiting += [child for child in children if not isinstance(child, (ast.stmt, ast.Lambda))]


def _signature(takes: ast.arguments) -> _Signature:
    unset = len(takes.posonlyargs) + len(takes.args) - len(takes.defaults)
    needed = [each.arg for each in takes.args[: max(unset - len(takes.posonlyargs), 0)]]
    needed += [each.arg for each, default in zip(takes.kwonlyargs, takes.kw_defaults, strict=True) if default is None]
    return _Signature(
        positional=tuple(each.arg for each in takes.posonlyargs[: max(unset, 0)]),
        names=frozenset(each.arg for each in (*takes.args, *takes.kwonlyargs)),
        needed=tuple(needed),
        takes_all=takes.kwarg is not None,
    )


def _unfit(binding: _Binding, manifest: Manifest) -> str:
    """It is called with the arguments by their names."""
    if binding.what:
        return f"{manifest.entry!r} of {manifest.module!r} is a {binding.what}; the entry is a function."
    if (takes := binding.signature) is None:
        return ""
    name = f"The function {manifest.entry!r} of {manifest.module!r}"
    schema: dict[str, Any] = manifest.input_schema
    properties = [each for each, said in schema.get("properties", {}).items() if said is not False]
    if takes.positional:
        return f"{name} takes {takes.positional[0]!r} by its place only; arguments come by their names."
    if not takes.takes_all and (missing := [each for each in properties if each not in takes.names]):
        return f"{name} has no parameter {missing[0]!r}, which the input schema names."
    never = [each for each in takes.needed if each not in properties]
    if never and schema.get("additionalProperties") is False and not schema.get("patternProperties"):
        return f"{name} needs {never[0]!r}, which the input schema does not have."
    return ""
