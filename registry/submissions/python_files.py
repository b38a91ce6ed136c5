"""Python files: the tools of one, drafted from its source, which is read as a tree and never run.

Each public function at its top becomes a tool: the signature makes the schema, the docstring the description. What the source cannot
say is a proposal that its author corrects. A Universe makes its tools while it runs, so its author packs it.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from registry.submissions.placed_findings import PlacedFinding
from unitools.docstrings import read_docstring
from unitools.publications import derive_package_name
from unitools.source_scans import SourceScan, is_secret_name

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SOURCE_BYTES = 256 * 1024
TIMEOUT_MS = 5000
_STEM = re.compile(r"[^a-z0-9_]+")
_PLAIN: dict[str, dict[str, Any]] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "dict": {"type": "object"},
    "list": {"type": "array"},
    "Any": {},
    "object": {},
}
_WITHIN_SCHEMA = "/input_schema/properties/"


@dataclass(slots=True)
class SourceFunction:
    """``parameters``: the line of each."""

    name: str
    line: int
    description_line: int
    document: dict[str, Any]
    parameters: dict[str, int] = field(default_factory=dict)

    def find_line(self, pointer: str) -> int:
        if pointer.startswith(_WITHIN_SCHEMA):
            name = pointer.removeprefix(_WITHIN_SCHEMA).partition("/")[0]
            return self.parameters.get(name, self.line)
        return self.description_line if pointer == "/description" else self.line


@dataclass(slots=True)
class PythonFile:
    """``files``: the package that it becomes, by names that begin with the package's own."""

    name: str
    package: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    functions: list[SourceFunction] = field(default_factory=list)
    findings: list[PlacedFinding] = field(default_factory=list)

    def find_function(self, document: Any) -> SourceFunction | None:
        entry = document.get("implementation", {}).get("entry") if isinstance(document, dict) else None
        return next((each for each in self.functions if each.name == entry), None)

    def at(self, line: int, message: str, fix: str, severity: str = "error") -> None:
        self.findings.append(PlacedFinding(self.name, line, message, fix, severity))


def read_python_file(name: str, source: str, *, group: str, version: str) -> PythonFile:
    """``group``: ``acme.shop``, under which its tools stand."""
    stem = _STEM.sub("_", name.rpartition("/")[2].removesuffix(".py").lower()).strip("_") or "tools"
    made = PythonFile(name, derive_package_name(group))
    module = f"{made.package}.{stem}"
    made.files = {f"{made.package}/__init__.py": b"", f"{made.package}/{stem}.py": source.encode()}
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        made.at(error.lineno or 1, f"This is not Python: {error.msg}.", "Correct the line.")
        return made
    except (ValueError, RecursionError, MemoryError):
        made.at(1, "The file cannot be read as Python.", "Save it as UTF-8 text, and split what is nested too deep.")
        return made
    if (line := _find_universe(tree)) is not None:
        made.at(
            line,
            "A Universe makes its tools while it runs, and the hub runs nothing that nobody has reviewed.",
            "Run `unitools push` on the file, or `unitools pack` and upload the capsule.",
        )
        return made
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("_"):
            made.functions.append(_read_function(node, made, group=group, version=version, module=module))
    if not made.functions:
        made.at(
            1,
            "There is no function at the top of the file that becomes a tool.",
            "Write one whose name does not begin with _.",
        )
    _note_reach(source, made)
    return made


def _find_universe(tree: ast.Module) -> int | None:
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = (node for node in calls if getattr(node.func, "id", getattr(node.func, "attr", "")) == "Universe")
    return next((node.lineno for node in named), None)


def _read_function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, made: PythonFile, *, group: str, version: str, module: str
) -> SourceFunction:
    docs = read_docstring(ast.get_docstring(node))
    first = node.body[0]
    is_documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if not docs.description:
        made.at(
            node.lineno, f"{node.name} has no docstring.", "Write what it does: models choose tools by it.", "warning"
        )
    properties: dict[str, Any] = {}
    required: list[str] = []
    lines: dict[str, int] = {}
    for argument, default in _list_parameters(node, made):
        schema = _read_annotation(argument.annotation)
        if schema is None:
            schema = {}
            made.at(
                argument.lineno,
                f"{argument.arg} has no type that can be read here, so it takes any JSON.",
                "Write str, int, float, bool, list[…], dict[str, …], Literal[…] or a union of them; or correct the manifest.",
                "warning",
            )
        lines[argument.arg] = argument.lineno
        if text := docs.parameters.get(argument.arg):
            schema = schema | {"description": text}
        if default is None:
            required.append(argument.arg)
        elif (value := _read_literal(default)) is not None:
            schema = schema | {"default": value}
        properties[argument.arg] = schema
    document = {
        "id": f"{group}.{node.name.lower()}",
        "version": version,
        "display_name": node.name.replace("_", " ").capitalize()[:80],
        "description": docs.description,
        "input_schema": {
            "type": "object",
            "additionalProperties": False,
            "required": required,
            "properties": properties,
        },
        "output_schema": _read_annotation(node.returns) or {},
        "side_effect": "None",
        "implementation": {"module": module, "entry": node.name},
        "timeout_ms": TIMEOUT_MS,
    }
    return SourceFunction(node.name, node.lineno, first.lineno if is_documented else node.lineno, document, lines)


def _list_parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef, made: PythonFile
) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """Each with its default. Arguments come by name, so what only has a place cannot be given."""
    said = node.args
    for each in (*said.posonlyargs, *([said.vararg] if said.vararg else []), *([said.kwarg] if said.kwarg else [])):
        made.at(each.lineno, f"{each.arg} cannot be given by name.", "Write it as an ordinary parameter.")
    first = len(said.args) - len(said.defaults)
    for place, each in enumerate(said.args):
        yield each, said.defaults[place - first] if place >= first else None
    yield from zip(said.kwonlyargs, said.kw_defaults, strict=True)


def _read_annotation(node: ast.expr | None) -> dict[str, Any] | None:
    """The schema of a type, where it is one of the plain ones and has no more parts than can be read."""
    try:
        return _read_type(node)
    except RecursionError:
        return None


def _read_type(node: ast.expr | None) -> dict[str, Any] | None:
    match node:
        case ast.Constant(value=None):
            return {"type": "null"}
        case ast.Constant(value=str(text)):
            return _read_type(_parse_type(text))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            found = _PLAIN.get(name)
            return dict(found) if found is not None else None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _join([_read_type(left), _read_type(right)])
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            return _read_generic(name, inner)
    return None


def _parse_type(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _read_generic(name: str, inner: ast.expr) -> dict[str, Any] | None:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    match name:
        case "Literal":
            values = [_read_literal(each) for each in parts]
            return None if None in values else {"enum": values}
        case "Optional":
            return _join([_read_type(inner), {"type": "null"}])
        case "Union":
            return _join([_read_type(each) for each in parts])
        case "Annotated":
            return _read_type(parts[0])
        case "list" | "List" | "Sequence":
            items = _read_type(inner)
            return None if items is None else {"type": "array", "items": items}
        case "dict" | "Dict" | "Mapping" if len(parts) == 2:
            values_of = _read_type(parts[1])
            return None if values_of is None else {"type": "object", "additionalProperties": values_of or True}
    return None


def _join(parts: list[dict[str, Any] | None]) -> dict[str, Any] | None:
    if None in parts:
        return None
    found = [each for each in parts if each is not None]
    return {"anyOf": [branch for each in found for branch in each.get("anyOf", [each])]}


def _read_literal(node: ast.expr) -> Any:
    """A value that JSON has; None for anything else, and for None."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, (str, int, float, bool)) else None


def _note_reach(source: str, made: PythonFile) -> None:
    """What the source names of the world outside, at the line that names it first."""
    scan = SourceScan()
    scan.add(source, made.name)
    for name, place in scan.environment.items():
        what = "secrets" if is_secret_name(name) else "config_schema"
        made.at(
            _line_of(place),
            f"It reads {name} from its environment, which has no such name in the sandbox.",
            f"Name it under {what} in the manifest, and read it with runtime.{'secret' if what == 'secrets' else 'config'}.",
            "warning",
        )
    for host, place in scan.hosts.items():
        made.at(
            _line_of(place),
            f"It names the host {host}, which the sandbox does not let it reach.",
            'Ask for it: "capabilities": {"net": [{"host": "…"}]}, and side_effect Network.',
            "warning",
        )
    for program, place in scan.installs.items():
        made.at(
            _line_of(place),
            f"It installs packages with {program}, which the sandbox does not allow.",
            "Name them under dependencies in the manifest.",
            "warning",
        )


def _line_of(place: str) -> int:
    return int(place.rpartition(":")[2] or 0)
