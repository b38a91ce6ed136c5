"""Brought tools: the draft manifests of tools that others have made, from what their server lists.

A draft is for a person to read and to change. The texts of others are taken as they are or not at all, what they say of effects only
proposes one, and their names are mapped by one rule to names of a hub.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.changes import compare_manifests, compute_needed_bump
from unitools.metadata import derive_hub_segment
from unitools.publications import derive_package_name, find_id_collisions
from unitools.semver import Version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from unitools.changes import ManifestChange
    from unitools.mcp_listings import Listing

MAX_CHOSEN = 50
MAX_TEXT_CHARS = 4000
FIRST_VERSION = "1.0.0"
CONTENT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["content"],
    "additionalProperties": False,
    "properties": {
        "content": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string"}, "text": {"type": "string"}},
            },
        }
    },
}
_PREFIXES, _SUFFIXES = ("mcp-server-", "mcp-"), ("-mcp-server", "-mcp", "-server")
# What the draft takes from the server anew where its entry is another; all else of a manifest is its author's.
_OF_ENTRY = ("description", "input_schema", "output_schema")
_OF_SOURCE = ("origin", "dependencies", "dependency_constraints", "implementation")
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\ue000-\uf8ff\U000e0000-\U000e0fff]"
)


class CannotBring(Exception):
    """These tools cannot be brought as they are. The message says which, and why."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where tools come from and how their server is started. ``group``: what they stand under in a hub, ``group.package``."""

    package: str
    version: str
    group: str
    start: dict[str, Any]
    constraints: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        return derive_package_name(self.group)


@dataclass(frozen=True, slots=True)
class Draft:
    """One manifest, and what it changes since the one that was there (None: there was none)."""

    document: dict[str, Any]
    changes: list[ManifestChange] | None = field(default=None)


def derive_group(package: str) -> str:
    """``mcp.time`` for ``mcp-server-time``."""
    name = re.sub(r"[-_.]+", "-", package).lower()
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    word = re.sub(r"[^a-z0-9_]", "_", name).strip("_") or "server"
    return f"mcp.{word if word[0].isalpha() else f'p_{word}'}"


def draft_tools(
    listing: Listing, source: Source, names: Sequence[str], existing: Sequence[dict[str, Any]] = ()
) -> list[Draft]:
    """Drafts of the tools that the server calls so. ``existing``: manifests of an earlier run, kept but for what is new."""
    if unknown := [name for name in names if name not in listing.tools]:
        raise CannotBring(f"The server has no tool {', '.join(map(repr, unknown))}; it has {_listed(listing)}.")
    if len(set(names)) > MAX_CHOSEN:
        raise CannotBring(f"At most {MAX_CHOSEN} tools are brought at once; these are {len(set(names))}.")
    ids: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        ids.setdefault(f"{source.group}.{derive_hub_segment(name)}", []).append(name)
    if collisions := find_id_collisions(ids):
        raise CannotBring(" ".join(each.message for each in collisions))
    before = {each["id"]: each for each in existing}
    return [_draft(listing, source, id, names[0], before.get(id)) for id, names in sorted(ids.items())]


def _listed(listing: Listing) -> str:
    return ", ".join(sorted(listing.tools)) or "none"


def _draft(listing: Listing, source: Source, id: str, name: str, before: dict[str, Any] | None) -> Draft:
    made = _document(listing, source, id, name)
    if before is None:
        return Draft(made)
    if before.get("origin", {}).get("tool") != name:
        raise CannotBring(f"The manifest of {id} was brought from another tool. Remove it, or choose another --group.")
    document = dict(before)
    document.update((each, made[each]) for each in _OF_SOURCE if each in made)
    if before["origin"].get("entry_digest") != made["origin"]["entry_digest"]:
        document.update((each, made[each]) for each in _OF_ENTRY)
    if before.get("dependencies") != document["dependencies"]:
        document.pop("dependency_lock", None)  # of other packages; the hub finds out anew
    changes = compare_manifests(before, document)
    if changes:
        document["version"] = raise_version(str(before["version"]), compute_needed_bump(changes))
    return Draft(document, changes)


def raise_version(version: str, bump: str) -> str:
    """The next version that such a change needs."""
    now = Version.parse(version)
    if bump == "major" and now.major:
        return f"{now.major + 1}.0.0"
    return (
        f"{now.major}.{now.minor + 1}.0" if bump in ("minor", "major") else f"{now.major}.{now.minor}.{now.patch + 1}"
    )


def _document(listing: Listing, source: Source, id: str, name: str) -> dict[str, Any]:
    entry = listing.tools[name]
    for at, text in _texts(entry, ""):
        check_text(name, at, text)
    structured = isinstance(entry.get("outputSchema"), dict)
    effect = _proposed_effect(entry)
    document: dict[str, Any] = {
        "id": id,
        "version": FIRST_VERSION,
        "display_name": str(entry.get("title") or name)[:80],
        "description": entry.get("description") or f"{name}, of {source.package}. Its author says nothing about it.",
        "input_schema": _schema(name, entry.get("inputSchema"), "inputSchema"),
        "output_schema": _schema(name, entry["outputSchema"], "outputSchema") if structured else CONTENT_SCHEMA,
        "side_effect": effect,
        "safety_class": "Medium" if effect == "Write" else "Low",
        "timeout_ms": 30_000,
        "determinism": {"output": "none"},
        "implementation": {"kind": "mcp_stdio", "server": source.start | {"listing": source.folder}},
        "origin": {
            "package": source.package,
            "version": source.version,
            "tool": name,
            "result": "structured" if structured else "content",
            "entry_digest": listing.entry_digest(name),
            "listing_digest": listing.digest,
            "protocol": listing.protocol,
        },
        "dependencies": [f"{source.package}=={source.version}"],
    }
    if not structured:
        document["limits"] = {"artifacts": 5, "artifact_bytes": 4 * 1024 * 1024}
    if source.constraints:
        document["dependency_constraints"] = list(source.constraints)
    if source.hosts:
        document["capabilities"] = {"net": [{"host": each} for each in source.hosts]}
    return document


def _proposed_effect(entry: dict[str, Any]) -> str:
    """A hint is a claim of the author's: it proposes, and a person decides. Without one the tool is taken to write."""
    hints = entry.get("annotations")
    return "Read" if isinstance(hints, dict) and hints.get("readOnlyHint") is True else "Write"


def _schema(name: str, said: Any, what: str) -> dict[str, Any]:
    if not isinstance(said, dict) or said.get("type") != "object":
        raise CannotBring(f"The {what} of {name} is no object: a hub passes arguments and results by name.")
    return {word: value for word, value in said.items() if word != "$schema"}


def _texts(value: Any, at: str) -> Iterator[tuple[str, str]]:
    """Every text and every name of an entry, with its pointer."""
    waiting = [(at, value)]
    while waiting:
        place, found = waiting.pop()
        if isinstance(found, str):
            yield place, found
        elif isinstance(found, dict):
            for word, inner in found.items():
                yield f"{place}/{word[:60]!a}", word
                waiting.append((f"{place}/{word[:60]}", inner))
        elif isinstance(found, list):
            waiting += [(f"{place}/{index}", inner) for index, inner in enumerate(found)]


def check_text(name: str, at: str, text: str) -> None:
    """A model reads what others wrote: all of it must be there to be seen."""
    if len(text) > MAX_TEXT_CHARS:
        raise CannotBring(f"{name}{at} has {len(text):,} characters; a text has at most {MAX_TEXT_CHARS:,}.")
    if found := _HIDDEN.search(text):
        sign = f"U+{ord(found[0]):04X}"
        raise CannotBring(f"{name}{at} holds the character {sign}, which nobody sees or which steers a terminal.")
