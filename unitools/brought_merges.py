"""Brought merges: a tool that is brought again, of what its source made of it then, what people have made of that, and what the source
makes of it now.

What the source says as it did stays as people have it, what it says no more goes, what is new comes. What people have written
otherwise stays, and of what both have narrowed that which is in both. Where nobody knows what it said
(``then`` is None), all that is there counts as its own: by being brought again a server's reach does not only grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.expressions import SAFETY_CLASSES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_OF_SOURCE = (
    "implementation",
    "capabilities",
    "state",
    "limits",
    "dependency_constraints",
    "secrets",
    "side_effect",
    "safety_class",
)
_HOW_STARTED = ("script", "module")
_ENTRY_NAMES: dict[str, Callable[[Any], Any]] = {
    "net": lambda entry: entry.get("host"),
    "proc": lambda entry: entry,
    "fs": lambda entry: entry.get("path"),
}


def pick_merged(made: Mapping[str, Any]) -> dict[str, Any]:
    """What of a manifest, as the source alone makes it, is needed to merge a later one."""
    return {name: made[name] for name in _OF_SOURCE if name in made}


def merge_entries(
    mine: Sequence[Any], then: Sequence[Any] | None, now: Sequence[Any], name_of: Callable[[Any], Any]
) -> list[Any]:
    """Entries that are known by a name. What people have added stays, and what they have taken away stays away."""
    known = {name_of(each): each for each in (mine if then is None else then)}
    wanted = {name_of(each): each for each in now}
    merged = []
    for each in mine:
        name = name_of(each)
        if name not in known:
            merged.append(each)
        elif name in wanted:
            merged += [each] if then is None else _merge_entry(each, known[name], wanted[name])
    there = known.keys() | {name_of(each) for each in mine}
    return merged + [each for name, each in wanted.items() if name not in there]


def _merge_entry(mine: Any, then: Any, now: Any) -> list[Any]:
    """What the source says otherwise by now, but where a person has written something else; of a list, what is in both. With nothing
    left of one there is no such entry."""
    if mine == then or not isinstance(mine, dict):
        return [now]
    merged = dict(mine)
    for name in {**then, **now}:
        if then.get(name) == now.get(name):
            continue
        if mine.get(name) == then.get(name):
            _put(merged, name, now.get(name))
        elif isinstance(mine.get(name), list) and name in now:
            merged[name] = [each for each in mine[name] if each in now[name]]
            if not merged[name]:
                return []
    return [merged]


def merge_start(
    mine: Mapping[str, Any], then: Mapping[str, Any] | None, now: Mapping[str, Any], *, is_whole: bool
) -> dict[str, Any]:
    """How a server is started. ``is_whole``: what is not in ``now`` is not so; otherwise it is as it was."""
    merged = dict(mine)
    for names in (_HOW_STARTED, ("arguments",)):
        wanted = _pick(now, names)
        if (is_whole or wanted) and (then is None or _pick(then, names) != wanted):
            merged = {name: value for name, value in merged.items() if name not in names} | wanted
    if is_whole or "environment" in now:
        wanted = now.get("environment", [])
        secret = {each["name"] for each in wanted if "secret" in each}
        # The value goes of what is a secret by now.
        there = [each for each in mine.get("environment", []) if not ("value" in each and each["name"] in secret)]
        # Where nobody knows, what a secret or the configuration gives was written by a person.
        before = [each for each in there if "value" in each] if then is None else then.get("environment", [])
        before = [each for each in before if not ("value" in each and each["name"] in secret)]
        _put(merged, "environment", merge_entries(there, before, wanted, lambda each: each["name"]))
    return merged


def merge_secrets(document: dict[str, Any], then: Mapping[str, Any] | None, made: Mapping[str, Any]) -> None:
    """Those that the source names. Where nobody knows what it named, what is there was written by a person. A new one comes only where
    the merged environment hands it over: people may have given its variable something else."""
    mine, before = document.get("secrets", []), [] if then is None else then.get("secrets", [])
    environment = document["implementation"]["server"].get("environment", [])
    used = {each["secret"] for each in environment if "secret" in each} | {each["name"] for each in mine}
    wanted = [each for each in made.get("secrets", []) if each["name"] in used]
    _put(document, "secrets", merge_entries(mine, before, wanted, lambda each: each["name"]))


def merge_reach(
    document: dict[str, Any],
    before: Mapping[str, Any],
    made: Mapping[str, Any],
    then: Mapping[str, Any] | None,
    *,
    is_whole: bool,
) -> None:
    """Write into the ``document`` of a tool that was there ``before`` what its server reaches: hosts, programs, files, a browser, what
    it keeps, and the image that has it all. ``made``, ``then``: as the source alone makes the tool now, and made it."""
    mine, now = before.get("capabilities", {}), made.get("capabilities", {})
    was = None if then is None else then.get("capabilities", {})
    merged = dict(mine)
    for kind, name_of in _ENTRY_NAMES.items():
        if is_whole or kind in now:
            known = None if was is None else was.get(kind, [])
            _put(merged, kind, merge_entries(mine.get(kind, []), known, now.get(kind, []), name_of))
    _merge_value(merged, "browser", was, now, is_whole=is_whole)
    _put(document, "capabilities", merged)
    state = dict(document)
    _merge_value(state, "state", then, made, is_whole=is_whole)
    if "state" in state:
        document["state"] = before.get("state", {}) | state["state"]  # how much is kept is the author's
    else:
        document.pop("state", None)
    implementation = dict(document["implementation"])
    of_then = None if then is None else then["implementation"]
    _merge_value(implementation, "image", of_then, made["implementation"], is_whole=is_whole)
    document["implementation"] = implementation
    _follow_files(document, before, made)
    _follow_programs(document, before, made, then)


def _follow_files(document: dict[str, Any], before: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """A tool leaves files where it may change some."""
    had, has = (each.get("capabilities", {}).get("fs", []) for each in (before, document))
    limits = dict(document.get("limits", {}))
    if had and not has:
        limits.pop("files", None)
    elif had != has and "files" in made.get("limits", {}):
        limits.setdefault("files", made["limits"]["files"])
    _put(document, "limits", limits)


def _follow_programs(
    document: dict[str, Any], before: Mapping[str, Any], made: Mapping[str, Any], then: Mapping[str, Any] | None
) -> None:
    """The effect that a tool has by its programs comes and goes with them."""
    had, has = ("proc" in each.get("capabilities", {}) for each in (before, document))
    if had != has and before["side_effect"] in ("Process", "Read") and (before["side_effect"] == "Process") == had:
        known = propose_safety_class(before["side_effect"]) if then is None else then["safety_class"]
        document["side_effect"] = made["side_effect"]
        document["safety_class"] = (
            made["safety_class"]
            if before["safety_class"] == known
            else choose_stricter(before["safety_class"], made["safety_class"])
        )


def choose_stricter(*safety_classes: str) -> str:
    return max(safety_classes, key=SAFETY_CLASSES.index)


def propose_safety_class(side_effect: str) -> str:
    """What is made of an effect where no person has said anything."""
    return "Low" if side_effect == "Read" else "Medium"


def _merge_value(
    into: dict[str, Any], name: str, then: Mapping[str, Any] | None, now: Mapping[str, Any], *, is_whole: bool
) -> None:
    if (is_whole or name in now) and (then is None or then.get(name) != now.get(name)):
        _put(into, name, now.get(name))


def merge_constraints(document: dict[str, Any], then: Mapping[str, Any] | None, constraints: Sequence[str]) -> None:
    if then is None or then.get("dependency_constraints", []) != list(constraints):
        document["dependency_constraints"] = list(constraints)


def _pick(part: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: part[name] for name in names if name in part}


def _put(into: dict[str, Any], name: str, value: Any) -> None:
    """An empty one is none."""
    if value:
        into[name] = value
    else:
        into.pop(name, None)
