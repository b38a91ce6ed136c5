"""Origin changes: what changed in what a tool was brought from, and in what answers its calls."""

from __future__ import annotations

from typing import Any

from unitools.changes.comparisons import Changes, compare_unknown_members
from unitools.changes.kinds import make_change

ORIGIN_KINDS = {
    "package": "origin.package_changed",
    "url": "origin.url_changed",
    "version": "origin.version_changed",
    "tool": "origin.tool_changed",
    "result": "origin.result_changed",
    "entry_digest": "origin.entry_changed",
    "listing_digest": "origin.listing_changed",
    "protocol": "origin.protocol_changed",
    "document": "origin.document_changed",
    "operation": "origin.operation_changed",
    "operation_digest": "origin.description_changed",
    "object": "origin.object_changed",
    "object_digest": "origin.object_description_changed",
}
# What an object is; the rest is which state of it.
OBJECT_IDENTITY = ("name", "framework", "package")
# What is reached, and as whom; the rest is how it is asked for.
REACH = {
    "operation": ("server", "method", "path", "credentials", "account"),
    "remote": ("url", "credentials", "account"),
}


def compare_implementation(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    """Other code answers; or what the gate asks for is another, part by part."""
    for part, reach in REACH.items():
        was, is_now = old.get(part), new.get(part)
        if isinstance(was, dict) and isinstance(is_now, dict):
            for name in sorted(was.keys() | is_now.keys()):
                if was.get(name) != is_now.get(name):
                    kind = f"{part}.reach_changed" if name in reach else f"{part}.changed"
                    yield make_change(kind, f"/implementation/{part}/{name}", was.get(name), is_now.get(name))
            yield from compare_unknown_members("/implementation", old, new, (part,))
            return
    yield make_change("implementation.changed", "/implementation", old, new)


def compare_origin(old: Any, new: Any) -> Changes:
    """What a tool was brought from. Its schemas and texts are fields of their own; a digest says that what was pinned is another."""
    if old is None or new is None:
        yield make_change("origin.added" if old is None else "origin.removed", "/origin", old, new)
        return
    for name, kind in ORIGIN_KINDS.items():
        was, is_now = old.get(name), new.get(name)
        if name == "object" and isinstance(was, dict) and isinstance(is_now, dict):
            yield from _compare_object(was, is_now)
        elif was != is_now:
            yield make_change(kind, f"/origin/{name}", was, is_now)


def _compare_object(old: dict[str, Any], new: dict[str, Any]) -> Changes:
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            kind = "origin.object_changed" if name in OBJECT_IDENTITY else "origin.object_version_changed"
            yield make_change(kind, f"/origin/object/{name}", old.get(name), new.get(name))


def is_origin(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and value.keys() <= ORIGIN_KINDS.keys())
