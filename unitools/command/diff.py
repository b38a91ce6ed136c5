"""Command ``unitools diff OLD.json NEW.json``: what changed between two manifests, and whether the version number says so."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unitools.changes import compare_manifests, compute_given_bump, compute_needed_bump, find_offending_changes
from unitools.command.terminal import GOOD, NO, CannotRun, print_lines, read_json
from unitools.semver import Version

if TYPE_CHECKING:
    import argparse

    from unitools.changes import ManifestChange


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("old", type=Path, metavar="OLD.json")
    command.add_argument("new", type=Path, metavar="NEW.json")
    command.add_argument("--json", action="store_true", help="print JSON, for programs")


def _inside(document: Any) -> str:
    """Where the manifest is in a saved answer of ``GET /api/v1/tools/{id}/versions/{version}``; empty for anything else."""
    data = document.get("data") if isinstance(document, dict) else None
    places = {".data.manifest": data, ".manifest": document}
    return next(
        (at for at, held in places.items() if isinstance(held, dict) and isinstance(held.get("manifest"), dict)), ""
    )


def read_manifest(path: Path) -> dict[str, Any]:
    """A manifest as far as it must be one to be compared: an object with a version."""
    document = read_json(path)
    if inside := _inside(document):
        raise CannotRun(
            f"{path} is an answer of the hub, with the manifest inside it. "
            f"Take it out: jq {inside} {shlex.quote(str(path))} > manifest.json"
        )
    if not isinstance(document, dict) or not isinstance(document.get("version"), str):
        raise CannotRun(f"{path} is not a manifest: it is no object with a `version`.")
    try:
        Version.parse(document["version"])
    except ValueError as error:
        raise CannotRun(f"{path}: {error}") from error
    return document


def _table(changes: list[ManifestChange]) -> list[str]:
    rows = [(each.bump, each.risk, each.kind, each.pointer, each.message) for each in changes]
    head = ("needs", "risk", "change", "where")
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=False)).rstrip() for row in (head, *rows)
    ]
    return [lines[0], *(text for line, row in zip(lines[1:], rows, strict=True) for text in (line, f"       {row[4]}"))]


def run(options: argparse.Namespace) -> int:
    old, new = read_manifest(options.old), read_manifest(options.new)
    changes = compare_manifests(old, new)
    needed, given = compute_needed_bump(changes), compute_given_bump(old["version"], new["version"])
    wrong = find_offending_changes(old["version"], new["version"], changes)
    if options.json:
        answer = {
            "old": {"id": old.get("id"), "version": old["version"]},
            "new": {"id": new.get("id"), "version": new["version"]},
            "needed": needed,
            "given": given,
            "right": not wrong,
            "changes": [change.to_json() for change in changes],
            "offending": [change.to_json() for change in wrong],
        }
        print_lines(json.dumps(answer, indent=2))
        return NO if wrong else GOOD
    lines = _table(changes) if changes else ["Nothing changed but the version."]
    step = f"{old['version']} -> {new['version']}"
    if not wrong:
        verdict = f"{step} is right: the changes need {needed}, the numbers allow {given}."
    elif given == "none":
        verdict = f"{step} is wrong: the new version is not newer. The changes need {needed}."
    else:
        verdict = f"{step} is wrong: the numbers allow {given}, and {len(wrong)} of {len(changes)} changes need more:"
        verdict = "\n  ".join([verdict, *(f"{each.kind} at {each.pointer} needs {each.bump}" for each in wrong)])
    print_lines(*lines, "", verdict)
    return NO if wrong else GOOD
