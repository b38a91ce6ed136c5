"""Trial answers: whether what a process says that has tried an object is what such a process says.

Code of others ran in that process and may have written the answer itself. What can be known without it is not taken from it: the
digest is computed here, and versions are those of the packages that are there.
"""

from __future__ import annotations

from importlib.metadata import distributions
from typing import TYPE_CHECKING, Any

from unitools.brought_objects import FRAMEWORKS, PINNED
from unitools.command.terminal import CannotRun
from unitools.dependency_locks import normalize_name
from unitools.mcp_listings import compute_json_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ANY = object  # of JSON
_SCAN = {
    "environment": {"*": str},
    "hosts": {"*": str},
    "installs": {"*": str},
    "imports": [str],
    "acts": bool,
    "is_whole": bool,
}
_FAILED = {"type": str, "message": str, "missing": [str], "attribute": str}
_ENV_VAR = {"name": str, "description": str, "required": bool}
_DESCRIPTION = {
    "framework": str,
    "name": str,
    "description": str,
    "input_schema": {"*": _ANY},
    "output_schema": {"*": _ANY},
    "asynchronous": bool,
    "env_vars": [_ENV_VAR],
    "injected": {"*": {"*": _ANY}},
    "secrets": [{"name": str, "*": _ANY}],
    "has_artifact": bool,
    "notes": [str],
}
_LOOKED = {"package": str, "distributions": {"*": str}, "unknown": [str], "scan": _SCAN}
_STAGES = ("import", "find", "make", "describe")

_OTHERWISE = (
    "The process that tried it did not say what such a process says: its source could not be read, or code that it ran answered in "
    "its place."
)


def check_listing(said: Any) -> list[list[str]]:
    """Name, framework and first line of each."""
    if not _fits(said, {"listed": [[str]]}) or any(len(each) != 3 for each in said["listed"]):
        raise CannotRun(_OTHERWISE)
    listed: list[list[str]] = said["listed"]
    return listed


def check_failure(said: dict[str, Any]) -> dict[str, Any]:
    if not _fits(said["failed"], _FAILED):
        raise CannotRun(_OTHERWISE)
    return dict(said["failed"])


def check_answer(said: Any, folders: Sequence[Path], path: Sequence[str]) -> dict[str, Any]:
    """What was seen, with what is known better here. ``folders``: as of the trial; ``path``: where this machine's packages are."""
    is_made = isinstance(said, dict) and not ({"refused", "failed"} & said.keys())
    shapes: list[Any] = [{"stage": str, "starts": [str], "reads": {"*": str}}]
    shapes += [{"description": _DESCRIPTION, "is_class": bool} | _LOOKED] if is_made else []
    for name, shape in {"refused": str, "failed": _FAILED, "env_vars": [_ENV_VAR], "scan": _SCAN}.items():
        shapes += [{name: shape}] if isinstance(said, dict) and name in said else []
    if not all(_fits(said, each) for each in shapes) or said["stage"] not in _STAGES:
        raise CannotRun(_OTHERWISE)
    if not is_made:
        return dict(said)
    description = said["description"]
    if description["framework"] not in FRAMEWORKS or not _fits(description.get("config_schema") or {}, {"*": _ANY}):
        raise CannotRun("The process that tried it names a framework that there is not.")
    known = _list_versions([*map(str, folders[1:]), *path])
    named = said["distributions"] | (
        {said["package"]: known.get(normalize_name(said["package"]))} if said["package"] else {}
    )
    if wrong := [
        name for name, version in named.items() if version is None or known.get(normalize_name(name)) != version
    ]:
        raise CannotRun(
            f"The process that tried it names a package that is not here in that version: {wrong[0][:100]!r}."
        )
    return dict(said) | {"digest": compute_json_digest({name: description[name] for name in PINNED})}


def _list_versions(path: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in distributions(path=list(path)):
        name = each.metadata["Name"]
        if isinstance(name, str):
            found.setdefault(normalize_name(name), each.version)
    return found


def _fits(value: Any, shape: Any) -> bool:
    """``[shape]``: a list of these; ``{"*": shape}``: an object whose other members are these."""
    match shape:
        case type():
            return isinstance(value, shape)
        case [each]:
            return isinstance(value, list) and all(_fits(one, each) for one in value)
        case dict():
            return isinstance(value, dict) and all(
                _fits(value.get(name), each)
                if name != "*"
                else all(_fits(one, each) for word, one in value.items() if word not in shape)
                for name, each in shape.items()
            )
    return False
