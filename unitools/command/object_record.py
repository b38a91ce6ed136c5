"""Object record: what an earlier run of ``unitools bring python`` left, held against what the command itself would have written.

A folder comes with a repository, and its names become code of the source files and arguments of pip: they keep to the same patterns as
the options do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from unitools.brought_objects import MADE_FILE
from unitools.command.object_choices import read_kept
from unitools.command.terminal import CannotRun, read_json

if TYPE_CHECKING:
    from pathlib import Path

    from unitools.object_drafts import ObjectChoices

_MODULE = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
REFERENCE = re.compile(f"({_MODULE})(?::({_MODULE}))?")
PACKAGE = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:\[[A-Za-z0-9,._-]+\])?(?:==[A-Za-z0-9][A-Za-z0-9.!+_-]*)?"
)
CONSTRAINT = re.compile(r"[A-Za-z0-9][ -~]{0,199}")


@dataclass(frozen=True, slots=True)
class ObjectRecord:
    """``manifests``: of objects, whoever has changed them. ``objects``: what was made of each, by references; ``choices``: what was
    said of each. ``is_brought``: whether there was an earlier run."""

    manifests: list[dict[str, Any]] = field(default_factory=list)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    choices: dict[str, ObjectChoices] = field(default_factory=dict)
    packages: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    is_brought: bool = False

    @property
    def references(self) -> list[str]:
        return [str(each["origin"]["object"]["name"]) for each in self.manifests]


def read_record(folder: Path) -> ObjectRecord:
    """Raises ``CannotRun`` with the file that is otherwise than it can have been written."""
    found = [_read_manifest(path) for path in sorted((folder / "manifests").glob("*.json"))]
    manifests = [each for each in found if each is not None]
    place = folder / MADE_FILE
    if not place.is_file():
        return ObjectRecord(manifests)
    record = read_json(place)
    try:
        objects = {_check(REFERENCE, name): _check_made(said) for name, said in record.get("objects", {}).items()}
        return ObjectRecord(
            manifests,
            objects,
            {name: read_kept(said.get("choices", {})) for name, said in objects.items()},
            [_check(PACKAGE, each) for each in record.get("packages", [])],
            [_check(CONSTRAINT, each) for each in record.get("constraints", [])],
            is_brought=True,
        )
    except (AttributeError, TypeError, ValueError) as error:
        why = f": {str(error)[:200]}" if isinstance(error, ValueError) else ""
        raise CannotRun(f"{place} is not as `unitools bring python` writes it{why}. Put it back as it was.") from None


def _read_manifest(path: Path) -> dict[str, Any] | None:
    """None: it is of no object."""
    manifest = read_json(path)
    origin = manifest.get("origin", {}) if isinstance(manifest, dict) else None
    if isinstance(origin, dict) and "object" not in origin:
        return None
    named = origin["object"].get("name") if isinstance(origin, dict) and isinstance(origin["object"], dict) else None
    if (
        isinstance(named, str)
        and REFERENCE.fullmatch(named)
        and all(isinstance(manifest.get(each), str) for each in ("id", "version"))
        and isinstance(manifest.get("dependencies", []), list)
    ):
        return dict(manifest)
    raise CannotRun(
        f"{path} is no manifest of an object: it needs an id, a version and origin.object.name. Correct it."
    )


def _check(pattern: re.Pattern[str], text: Any) -> str:
    if not (isinstance(text, str) and pattern.fullmatch(text)):
        raise ValueError(f"{str(text)[:60]!r} cannot stand there")
    return text


def _check_made(said: Any) -> dict[str, Any]:
    is_made = isinstance(said.get("made", {}), dict) and isinstance(said.get("source", ""), str)
    if not is_made:
        raise ValueError("what was made of an object is no manifest and no text")
    return dict(said)
