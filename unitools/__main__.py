"""What can an author do with a manifest on the command line?

``python -m unitools diff OLD.json NEW.json`` lists what changed between two manifests of a tool and says whether the version
number was raised far enough. Exit status: 0 it was, 1 the command could not run, 2 it was not.
``python -m unitools lock requirements.txt`` prints what stands under ``dependency_lock``, from a requirements file with hashes.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from unitools.changes import changes_between, given_bump, needed_bump, offending
from unitools.locks import lines_of
from unitools.semver import Version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.changes import Change

GOOD, COULD_NOT_RUN, NO = 0, 1, 2


class CannotRun(Exception):
    """The command has nothing to work on."""


class Parser(argparse.ArgumentParser):
    """2 is an answer here, so a wrong command line exits with 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(COULD_NOT_RUN, f"{self.prog}: {message}\n")


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


def _inside(document: Any) -> str:
    """Where the manifest is in a saved answer of ``GET /api/v1/tools/{id}/versions/{version}``; empty for anything else."""
    data = document.get("data") if isinstance(document, dict) else None
    places = {".data.manifest": data, ".manifest": document}
    return next(
        (at for at, held in places.items() if isinstance(held, dict) and isinstance(held.get("manifest"), dict)), ""
    )


def read_manifest(path: Path) -> dict[str, Any]:
    """A manifest as far as it must be one to be compared: an object with a version."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise CannotRun(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise CannotRun(f"{path} is not JSON: {str(error)[:200]}.") from error
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


def _table(changes: list[Change]) -> list[str]:
    rows = [(each.bump, each.risk, each.kind, each.pointer, each.message) for each in changes]
    head = ("needs", "risk", "change", "where")
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = [
        "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=False)).rstrip() for row in (head, *rows)
    ]
    return [lines[0], *(text for line, row in zip(lines[1:], rows, strict=True) for text in (line, f"       {row[4]}"))]


def diff(options: argparse.Namespace) -> int:
    old, new = read_manifest(options.old), read_manifest(options.new)
    changes = changes_between(old, new)
    needed, given = needed_bump(changes), given_bump(old["version"], new["version"])
    wrong = offending(old["version"], new["version"], changes)
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
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
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
    sys.stdout.write("\n".join([*lines, "", verdict]) + "\n")
    return NO if wrong else GOOD


def lock(options: argparse.Namespace) -> int:
    try:
        lines = lines_of(options.requirements.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotRun(f"{options.requirements} cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise CannotRun(
            f"{options.requirements}: {error} Make it with pip-compile or uv pip compile, --generate-hashes."
        ) from error
    sys.stdout.write(json.dumps(lines, indent=2) + "\n")
    return GOOD


def build_parser() -> Parser:
    parser = Parser(prog="python -m unitools", description="Work with manifests of tools.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("diff", help="what changed between two manifests, and is the version number right?")
    command.add_argument("old", type=Path, metavar="OLD.json")
    command.add_argument("new", type=Path, metavar="NEW.json")
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=diff)
    command = commands.add_parser("lock", help="a requirements file with hashes, as a manifest's dependency_lock")
    command.add_argument("requirements", type=Path, metavar="requirements.txt")
    command.set_defaults(run=lock)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(arguments)
    try:
        result: int = options.run(options)
    except CannotRun as problem:
        sys.stderr.write(f"{problem}\n")
        return COULD_NOT_RUN
    return result


if __name__ == "__main__":
    sys.exit(main())
