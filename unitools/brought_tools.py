"""Brought tools: the draft manifests of tools that others have made, from what their server lists.

A draft is for a person to read and to change. The texts of others are taken as they are or not at all, what they say of effects only
proposes one, and their names are mapped by one rule to names of a hub.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from unitools.brought_merges import (
    choose_stricter,
    merge_constraints,
    merge_reach,
    merge_secrets,
    merge_start,
    propose_safety_class,
)
from unitools.changes import compare_manifests, compute_needed_bump
from unitools.dependency_locks import normalize_name
from unitools.mcp_listings import read_entry_schema
from unitools.metadata import derive_hub_segment
from unitools.publications import derive_package_name, find_id_collisions
from unitools.semver import Version
from unitools.server_secrets import add_secrets, describe_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
# What the draft takes from the server anew where the server has it otherwise; all else of a manifest is its author's.
_OF_ENTRY = ("description", "input_schema", "output_schema")
_PACKAGE = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?")
_PROGRAM = re.compile(r"[a-z][a-z0-9_+-]{0,39}")
_TREE = re.compile(r"/data(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,99}){0,10}")
_ALL_ACTIONS = ("read", "list", "write", "create", "delete")
_MOST_FILES = 100
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\ue000-\uf8ff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)


class CannotBring(Exception):
    """These tools cannot be brought as they are. The message says which, and why."""


@dataclass(frozen=True, slots=True)
class ServerReach:
    """What a server of a package is given beside its own code. ``programs``: of the image, by their names; ``image``: the one that has
    them, empty: the one that is named as the program; ``trees``: of the tenant's files; ``keeps``: whose files its calls leave for the
    next, empty: they leave none.
    """

    hosts: tuple[str, ...] = ()
    keeps: str = ""
    programs: tuple[str, ...] = ()
    image: str = ""
    trees: tuple[str, ...] = ()
    browser: bool = False

    def __post_init__(self) -> None:
        if len(self.programs) > 1 and not self.image:
            raise CannotBring("Several programs are named: name the image of the sandbox that has them all.")
        if unfit := [each for each in self.programs if not _PROGRAM.fullmatch(each)]:
            raise CannotBring(f"{unfit[0][:60]!r} is no name of a program: small letters, digits, +, - and _.")
        if self.trees and self.keeps:
            raise CannotBring("Below /data is either what calls keep, or files of the tenant: choose one of them.")
        if unfit := [each for each in self.trees if not _TREE.fullmatch(each)]:
            raise CannotBring(f"{unfit[0][:100]!r} is no folder below /data.")

    def describe(self) -> dict[str, Any]:
        """What a manifest has of it."""
        said: dict[str, Any] = {"state": {"kind": "files", "scope": self.keeps}} if self.keeps else {}
        capabilities: dict[str, Any] = {}
        if self.hosts:
            capabilities["net"] = [{"host": each} for each in self.hosts]
        if self.programs:
            capabilities["proc"] = [f"/usr/bin/{each}" for each in self.programs]
        if self.trees:
            capabilities["fs"] = [{"path": each, "actions": list(_ALL_ACTIONS)} for each in self.trees]
            said["limits"] = {"files": _MOST_FILES}
        if self.browser:
            capabilities["browser"] = True
        return said | ({"capabilities": capabilities} if capabilities else {})

    def choose_image(self) -> dict[str, str]:
        """Of ``implementation``: the image, where it is not the usual one."""
        image = self.image or next(iter(self.programs), "")
        return {"image": image} if image else {}


NO_REACH = ServerReach()


class BroughtSource(Protocol):
    """Where tools come from. ``group``: what they stand under in a hub; ``name``: what a person calls the source."""

    @property
    def group(self) -> str: ...

    @property
    def name(self) -> str: ...

    def describe(self) -> dict[str, Any]:
        """What a manifest has of the source and not of the tool: ``implementation``, and ``origin`` but for what the list says."""
        ...

    def renew(
        self, document: dict[str, Any], before: dict[str, Any], made: dict[str, Any], then: dict[str, Any] | None
    ) -> None:
        """Bring what is the source's in the ``document`` of a tool that was there ``before`` up to date with the one ``made`` now.
        ``then``: what the source made when it was brought before; None: nobody knows."""
        ...


@dataclass(frozen=True, slots=True)
class Source:
    """A package that brings the server, and how that is started. ``said`` and ``constraints``: what holds for tools that were brought
    before as well; None: what they have. ``is_whole``: start and reach are all that there is, and what they do not name is not given;
    otherwise it is as it was. ``secrets``: entries of the environment that come to what each tool has in its own.
    """

    package: str
    version: str
    group: str
    start: dict[str, Any]
    said: dict[str, Any] = field(default_factory=dict)
    constraints: tuple[str, ...] | None = None
    reach: ServerReach = NO_REACH
    is_whole: bool = False
    secrets: tuple[dict[str, str], ...] = ()

    @property
    def name(self) -> str:
        return self.package

    def describe(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "implementation": {
                "kind": "mcp_stdio",
                "server": self.start | {"listing": derive_package_name(self.group)},
                **self.reach.choose_image(),
            },
            "origin": {"package": self.package, "version": self.version},
            "dependencies": [f"{self.package}=={self.version}"],
        }
        if self.constraints:
            said["dependency_constraints"] = list(self.constraints)
        return said | describe_secrets(self.start) | self.reach.describe()

    def renew(
        self, document: dict[str, Any], before: dict[str, Any], made: dict[str, Any], then: dict[str, Any] | None
    ) -> None:
        renew_server(document, before, made, then, said=None if self.is_whole else self.said, secrets=self.secrets)
        document["dependencies"] = raise_requirement(before.get("dependencies", []), made["dependencies"][0])
        if self.constraints is not None:
            merge_constraints(document, then, self.constraints)
        if before.get("dependencies") != document["dependencies"]:
            document.pop("dependency_lock", None)  # of other packages; the hub finds out anew


def renew_server(
    document: dict[str, Any],
    before: dict[str, Any],
    made: dict[str, Any],
    then: dict[str, Any] | None,
    *,
    said: dict[str, Any] | None,
    secrets: Sequence[dict[str, str]] = (),
) -> None:
    """How a server is started and what it is given, in the manifest of a tool that was there. ``said``: what alone is said of its
    start; None: all of it is said, and so is what it is given. ``secrets``: what comes to its environment."""
    now = made["implementation"]["server"]
    of_then = None if then is None else then["implementation"]["server"]
    start = merge_start(
        before["implementation"]["server"], of_then, now if said is None else said, is_whole=said is None
    )
    if secrets:
        start["environment"] = add_secrets(start.get("environment", []), secrets)
    document["implementation"] = before["implementation"] | {"server": start | {"listing": now["listing"]}}
    merge_reach(document, before, made, then, is_whole=said is None)
    merge_secrets(document, then, made)


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
    listing: Listing,
    source: BroughtSource,
    names: Sequence[str],
    existing: Sequence[dict[str, Any]] = (),
    earlier: Listing | None = None,
    then: Mapping[str, dict[str, Any]] | None = None,
) -> list[Draft]:
    """Drafts of the tools that the server calls so. ``existing``: manifests of an earlier run, kept but for what the server says
    otherwise than it did then (``earlier``; None: it is not known what it said) and for the source (``then``: what that alone made, by
    the server's names of tools).
    """
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
    then = then or {}
    return [
        _draft(listing, source, id, names[0], before.get(id), earlier, then.get(names[0]))
        for id, names in sorted(ids.items())
    ]


def _listed(listing: Listing) -> str:
    return ", ".join(sorted(listing.tools)) or "none"


def _draft(
    listing: Listing,
    source: BroughtSource,
    id: str,
    name: str,
    before: dict[str, Any] | None,
    earlier: Listing | None,
    then: dict[str, Any] | None,
) -> Draft:
    made = _document(listing, source, id, name)
    if before is None:
        return Draft(made)
    if before.get("origin", {}).get("tool") != name:
        raise CannotBring(f"The manifest of {id} was brought from another tool. Remove it, or choose another --group.")
    document = before | {"origin": made["origin"]} | _take_entry(listing, name, before, made, earlier)
    source.renew(document, before, made, then)
    changes = compare_manifests(before, document)
    if changes:
        document["version"] = raise_version(str(before["version"]), compute_needed_bump(changes))
    return Draft(document, changes)


def _take_entry(
    listing: Listing, name: str, before: dict[str, Any], made: dict[str, Any], earlier: Listing | None
) -> dict[str, Any]:
    """What is the server's of a manifest, where it says it otherwise than before: the rest an author may have written."""
    if before["origin"].get("entry_digest") == made["origin"]["entry_digest"]:
        return {}
    if earlier is None or name not in earlier.tools:
        return {each: made[each] for each in _OF_ENTRY}
    then, now = _read_entry(earlier.tools[name]), _read_entry(listing.tools[name])
    taken = {each: made[each] for each in _OF_ENTRY if then.get(each) != now.get(each)}
    if before["side_effect"] == then["side_effect"] == "Read" and now["side_effect"] == "Write":
        # What it was lowered for is not said any more; what it was raised for may hold.
        taken["side_effect"] = made["side_effect"]
        taken["safety_class"] = choose_stricter(before["safety_class"], made["safety_class"])
    return taken


def _read_entry(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": entry.get("description"),
        "input_schema": read_entry_schema(entry, "inputSchema"),
        "output_schema": read_entry_schema(entry, "outputSchema"),
        "side_effect": _proposed_effect(entry),
    }


def raise_requirement(requirements: Sequence[str], wanted: str) -> list[str]:
    """Those that there are, the one that names its package in this version, with the extras that it had."""
    package, _, version = wanted.partition("==")
    found = [_PACKAGE.match(each) for each in requirements]
    is_same = [
        each is not None and normalize_name(each["name"]) == normalize_name(package.partition("[")[0]) for each in found
    ]
    kept = [
        f"{each[0]}=={version}" if each is not None and same else text
        for text, each, same in zip(requirements, found, is_same, strict=True)
    ]
    return kept if any(is_same) else [wanted, *kept]


def raise_version(version: str, bump: str) -> str:
    """The next version that such a change needs."""
    now = Version.parse(version)
    if bump == "major" and now.major:
        return f"{now.major + 1}.0.0"
    return (
        f"{now.major}.{now.minor + 1}.0" if bump in ("minor", "major") else f"{now.major}.{now.minor}.{now.patch + 1}"
    )


def _document(listing: Listing, source: BroughtSource, id: str, name: str) -> dict[str, Any]:
    entry = listing.tools[name]
    for at, text in walk_texts(entry, ""):
        check_text(name, at, text)
    structured = isinstance(entry.get("outputSchema"), dict)
    said = source.describe()
    effect = _proposed_effect(entry)
    if effect == "Read" and "proc" in said.get("capabilities", {}):
        effect = "Process"  # what a program does, no hint of the server's says
    document: dict[str, Any] = {
        "id": id,
        "version": FIRST_VERSION,
        "display_name": str(entry.get("title") or name)[:80],
        "description": entry.get("description") or f"{name}, of {source.name}. Its author says nothing about it.",
        "input_schema": _schema(name, entry.get("inputSchema"), "inputSchema"),
        "output_schema": _schema(name, entry["outputSchema"], "outputSchema") if structured else CONTENT_SCHEMA,
        "side_effect": effect,
        "safety_class": propose_safety_class(effect),
        "timeout_ms": 30_000,
        "determinism": {"output": "none"},
        "implementation": said.pop("implementation"),
        "origin": {
            **said.pop("origin"),
            "tool": name,
            "result": "structured" if structured else "content",
            "entry_digest": listing.entry_digest(name),
            "listing_digest": listing.digest,
            "protocol": listing.protocol,
        },
        **said,
    }
    if effect == "Read":
        _narrow_trees(document)
    if not structured:
        document["limits"] = document.get("limits", {}) | {"artifacts": 5, "artifact_bytes": 4 * 1024 * 1024}
    return document


def _narrow_trees(document: dict[str, Any]) -> None:
    """Of the tenant's files, a tool that reads changes none."""
    if trees := document.get("capabilities", {}).get("fs"):
        document["capabilities"]["fs"] = [each | {"actions": ["read", "list"]} for each in trees]
        del document["limits"]


def _proposed_effect(entry: dict[str, Any]) -> str:
    """A hint is a claim of the author's: it proposes, and a person decides. Without one the tool is taken to write."""
    hints = entry.get("annotations")
    return "Read" if isinstance(hints, dict) and hints.get("readOnlyHint") is True else "Write"


def _schema(name: str, said: Any, what: str) -> dict[str, Any]:
    if not isinstance(said, dict) or said.get("type") != "object":
        raise CannotBring(f"The {what} of {name} is no object: a hub passes arguments and results by name.")
    return {word: value for word, value in said.items() if word != "$schema"}


def walk_texts(value: Any, at: str) -> Iterator[tuple[str, str]]:
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
