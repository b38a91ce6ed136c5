"""Legacy catalogue: one of the older tool service (``capabilities.json``, SVC-2), as manifests and a package.

A catalogue is a list of tools, or an object with the list under ``capabilities`` or ``tools``, or an object of tools by their ids::

    {"tool_id": "web_search", "description": "…", "implementation_path": "tools/web_search.py", "parameters_schema": {…},
     "requires_sandbox": true, "timeout_seconds": 30, "dependencies": ["idna==3.10"]}

``implementation_path`` is a file or a dotted module below the catalogue's folder; its function ``run`` is called. Whatever else a
manifest can say (``output_schema``, ``side_effect``, ``capabilities``, ``tags``, ``version`` …) may stand beside, under its own name.
A field that means nothing to a hub is named in a warning, never passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.entries import line_of_entry
from unitools.manifest import manifest_schema
from unitools.manifest_validation import PublicationFinding
from unitools.metadata import derive_hub_segment
from unitools.packages import read_package_files
from unitools.publications import Publication, check_group, derive_package_name, find_id_collisions, validate_document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LISTS = ("capabilities", "tools")
_OWN = ("tool_id", "id", "name", "description", "implementation_path", "parameters_schema", "requires_sandbox")
_OWN_TOO = ("timeout_seconds",)
_MADE = {
    "id",
    "implementation",
    "input_schema",
    "manifest_version",
    "name",
    "timeout_ms",
}  # said by a field of the catalogue


class CatalogueError(ValueError):
    """A catalogue that cannot be read, with a sentence."""


def read_catalogue(document: Any, folder: Path, *, group: str, version: str = "1.0.0") -> Publication:
    """The tools of a catalogue under ``group.package``. ``folder`` is where the paths begin; nothing of it is run."""
    check_group(group)
    found: list[PublicationFinding] = []
    entries: dict[str, list[tuple[str, dict[str, Any], tuple[str, ...]]]] = {}
    for entry in _entries(document):
        tool = str(entry.get("tool_id") or entry.get("id") or entry.get("name") or "")
        if not tool:
            raise CatalogueError("A tool of the catalogue has no tool_id.")
        try:
            words = _module(str(entry.get("implementation_path", "")), folder)
        except CatalogueError as error:
            found.append(PublicationFinding(tool, "/implementation", str(error)))
        else:
            entries.setdefault(f"{group}.{derive_hub_segment(tool)}", []).append((tool, entry, words))
    modules = {each[2] for same in entries.values() for each in same}
    package, files, placed = _package(modules, folder, derive_package_name(group))
    manifests, names, places = [], {}, {}
    for id, same in entries.items():
        tool, entry, words = same[0]
        file = placed[words]
        module = file.removesuffix(".py").replace("/", ".")
        manifests.append(_manifest(entry, id, tool, version=version, module=module))
        names[id] = tool
        line = line_of_entry(files[file], "run")
        places[tool] = f"{'/'.join(words)}.py" + (f":{line}" if line else "")
        found += [*_unread(entry, tool), *validate_document(manifests[-1], tool)]
    found += find_id_collisions({id: [each[0] for each in same] for id, same in entries.items()})
    return Publication(package, tuple(manifests), files, names, tuple(found), places)


def _entries(document: Any) -> Iterator[dict[str, Any]]:
    held = document
    if isinstance(document, dict):
        held = next((document[name] for name in _LISTS if name in document), None)
        if held is None:
            held = document
    if isinstance(held, dict):
        held = [{"tool_id": name, **each} if isinstance(each, dict) else each for name, each in held.items()]
    if not isinstance(held, list) or not held or not all(isinstance(each, dict) for each in held):
        raise CatalogueError(
            "This is no catalogue: it is a list of tools, or an object with `capabilities` or `tools`."
        )
    yield from held


def _manifest(entry: dict[str, Any], id: str, tool: str, *, version: str, module: str) -> dict[str, Any]:
    """Without ``capabilities`` a tool reaches nothing but its own code, and that is what the catalogue's silence means here."""
    document: dict[str, Any] = {
        "id": id,
        "version": version,
        "display_name": str(entry.get("name") or tool)[:80],
        "description": entry.get("description") or f"The tool {tool}.",
        "input_schema": entry.get("parameters_schema", {"type": "object"}),
        "output_schema": {},
        "side_effect": "None",
        "requires_sandbox": entry.get("requires_sandbox", True),
        "implementation": {"module": module, "entry": "run"},
    }
    if "timeout_seconds" in entry:
        seconds = entry["timeout_seconds"]
        document["timeout_ms"] = round(seconds * 1000) if isinstance(seconds, int | float) else seconds
    said = {name: value for name, value in entry.items() if name in manifest_schema()["properties"]}
    return document | {name: value for name, value in said.items() if name not in _MADE}


def _unread(entry: dict[str, Any], tool: str) -> list[PublicationFinding]:
    known = {*_OWN, *_OWN_TOO, *manifest_schema()["properties"]} - (_MADE - {"id", "name"})
    odd = sorted(set(entry) - known)
    return [
        PublicationFinding(tool, f"/{name}", "The catalogue's field has no meaning in a hub.", "warning")
        for name in odd
    ]


def _module(path: str, folder: Path) -> tuple[str, ...]:
    """The words of the dotted module."""
    words = path.removesuffix(".py").replace("\\", "/").replace("/", ".").split(".") if path else []
    if not words or not all(word.isidentifier() and word.islower() and word != "__pycache__" for word in words):
        raise CatalogueError(f"implementation_path {path!r} is no Python file or module below the catalogue's folder.")
    file = folder.joinpath(*words).with_suffix(".py")
    if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
        raise CatalogueError(f"There is no {'/'.join(words)}.py below the folder of the catalogue.")
    return tuple(words)


def _package(
    modules: set[tuple[str, ...]], folder: Path, flat: str
) -> tuple[str, dict[str, bytes], dict[tuple[str, ...], str]]:
    """The one Python package that all modules are in, whole and under its own name; or single files, put into the folder ``flat``.

    Its name, its files, and which of them each module has become.
    """
    tops = {words[0] for words in modules if len(words) > 1 and (folder / words[0] / "__init__.py").is_file()}
    if not tops:
        files, placed = {f"{flat}/__init__.py": b""}, {}
        for words in sorted(modules):
            placed[words] = name = f"{flat}/{words[-1]}.py"
            if name in files:
                raise CatalogueError(f"Two files of the catalogue are called {words[-1]}.py. Rename one of them.")
            files[name] = folder.joinpath(*words).with_suffix(".py").read_bytes()
        return flat, files, placed
    places = {words[0] if len(words) > 1 else f"{words[0]}.py" for words in modules}
    if len(places) > 1:
        raise CatalogueError(
            f"The tools lie in several packages ({', '.join(sorted(places))}). "
            "One package travels at a time: make a catalogue for each."
        )
    (top,) = tops
    return top, dict(read_package_files(folder / top)), {words: f"{'/'.join(words)}.py" for words in modules}
