"""Deprecations: what of a tool is gone on a day, as its manifest announced it.

A sunset is the day from which the place is gone. The whole tool, and arguments, are what a hub can refuse; a sunset on anything else
would be a promise that nobody keeps, and is refused at registration.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unitools.manifest import Manifest

WHOLE = ""
_START, _STEP = "input_schema", "properties"


def argument_path(pointer: str) -> list[str] | None:
    """The names that lead to an argument which a pointer into a manifest names; None for anything else."""
    first, *steps = [each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:]] or [""]
    if first != _START or not steps or len(steps) % 2 or set(steps[::2]) != {_STEP}:
        return None
    return steps[1::2]


def find_due_deprecations(manifest: Manifest, *, today: date) -> Iterator[dict[str, str]]:
    """What was announced and has come."""
    for each in manifest.deprecations:
        if each.get("sunset") and date.fromisoformat(each["sunset"]) <= today:
            yield each


def find_tool_deprecation(manifest: Manifest, *, today: date) -> dict[str, str] | None:
    return next((each for each in find_due_deprecations(manifest, today=today) if each["pointer"] == WHOLE), None)


def find_argument_deprecations(
    manifest: Manifest, arguments: Any, *, today: date
) -> Iterator[tuple[str, dict[str, str]]]:
    """Those that were sent nevertheless: where, and what was announced."""
    for each in find_due_deprecations(manifest, today=today):
        path = argument_path(each["pointer"])
        if path and _holds(arguments, path):
            yield "/" + "/".join(path), each


def _holds(value: Any, path: list[str]) -> bool:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True
