"""Recursions: what stands for a schema within itself, in a dialect that has no references."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unitools.dialects.schemas import (
    DEEPEST,
    MANY,
    NAMED,
    CannotSay,
    Schema,
    format_value,
    list_types,
    resolve_reference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from unitools.dialects.renderers.base import Notes

_CHOICES = ("anyOf", "oneOf")


class Recursions:
    """Of one tool's parameters. What a reference tells is found out once for the whole rendering."""

    def __init__(self, root: Mapping[str, Any], notes: Notes) -> None:
        self._root, self._notes = root, notes
        self._types: dict[str, tuple[str, ...]] = {}
        self._said: dict[str, Schema] = {}

    def cut(self, reference: str, pointer: str, outer: str) -> tuple[Schema, str]:
        """What stands there, and the words for what is not said any more: its type, and in words which schema it is. ``outer``: where
        what the reference names is said."""
        if reference not in self._said:
            self._said[reference] = self._say({"$ref": reference}, pointer, frozenset())
        target, said = self._resolve(reference), self._said[reference]
        self._notes.lossy(pointer, "It is recursive; what is within it from here on is only said in words.")
        if "type" in said and not (isinstance(target, dict) and "type" in target):
            self._notes.info(pointer, f"No type is named; taken for {said['type'][0]}.")
        if isinstance(target, dict) and target.get("description"):
            said = {**said, "description": target["description"]}
        return said, f"It is of the same schema as {format_place(outer)}."

    def find_types(self, schema: Any) -> tuple[str, ...]:
        """As :func:`list_types`, also where only what it refers to or is made of tells them. What leads back to itself tells none."""
        waiting = [(each, False) for each in self._list_references(schema)]
        while waiting:
            reference, is_known = waiting.pop()
            if is_known:
                self._types[reference] = self._tell_types(self._resolve(reference))
            elif reference not in self._types:
                self._types[reference] = ()
                waiting.append((reference, True))
                waiting += [(each, False) for each in self._list_references(self._resolve(reference))]
        return self._tell_types(schema)

    def _resolve(self, reference: str) -> Any:
        return self._root if reference == "#" else resolve_reference(self._root, reference, "")

    def _list_references(self, schema: Any) -> list[str]:
        """Those on which its types depend."""
        found: list[str] = []
        waiting = [schema]
        while waiting:
            each = waiting.pop()
            if not isinstance(each, dict) or list_types(each):
                continue
            if "$ref" in each:
                found.append(each["$ref"])
            else:
                waiting += [part for key in ("allOf", *_CHOICES) for part in each.get(key, ())]
        return found

    def _tell_types(self, schema: Any) -> tuple[str, ...]:
        if not isinstance(schema, dict):
            return ()
        if types := list_types(schema):
            return types
        if "$ref" in schema:
            return self._types[schema["$ref"]]
        for each in schema.get("allOf", ()):
            if types := self._tell_types(each):
                return types
        branches = [self._tell_types(each) for each in schema.get("anyOf") or schema.get("oneOf") or ()]
        return _join_types(branches) if all(branches) else ()

    def _say(self, schema: Any, pointer: str, above: frozenset[tuple[int, ...]]) -> Schema:
        """Its types, and those of its items, of which an array has to say something. ``above``: items within which it is said."""
        types = self.find_types(schema)
        found = self._list_items(schema) if "array" in types else []
        if not found:
            return {"type": list(types)} if types else {}
        items = tuple(map(id, found))
        if len(above) > DEEPEST:
            raise CannotSay(pointer, f"it is nested deeper than {DEEPEST} levels")
        if items not in above:
            inner = found[0] if len(found) == 1 else {"anyOf": found}
            return {"type": list(types), "items": self._say(inner, pointer, above | {items})}
        others = [each for each in types if each != "array"]
        if not others:
            raise CannotSay(pointer, "it is a list of lists without an end")
        self._notes.lossy(pointer, "That its items may be lists again is only said in words.")
        return {"type": others}

    def _list_items(self, schema: Any) -> list[Any]:
        """Schemas of what is in an array, as far as it may be one; empty: any value."""
        found: list[Any] = []
        seen: set[str] = set()
        waiting = [(schema, False)]  # and whether something beside it says of items, too
        while waiting:
            each, is_part = waiting.pop()
            if not isinstance(each, dict):
                continue
            if "$ref" in each:
                if each["$ref"] not in seen:
                    seen.add(each["$ref"])
                    waiting.append((self._resolve(each["$ref"]), is_part))
                continue
            own = _get_items(each)
            if not own and not is_part and "array" in list_types(each):
                return []
            found += own
            waiting += [(part, True) for part in each.get("allOf", ())]
            waiting += [(part, is_part or bool(own)) for key in _CHOICES for part in each.get(key, ())]
        return found


def _get_items(schema: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for key in ("prefixItems", "items", "additionalItems"):
        if key in schema:
            found += schema[key] if isinstance(schema[key], list) else [schema[key]]
    return [each for each in found if each is not False]


def _join_types(branches: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for branch in branches for each in branch))


def format_place(pointer: str) -> str:
    """A place in the parameters, as a model sees them."""
    words = iter(each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:])
    path = part = ""
    for word in words:
        part = ""
        if word == "properties":
            path += f".{next(words)}"
        elif word in ("items", "prefixItems"):
            path += "[]"
        elif word in MANY:
            next(words)
            part = "a part of " if word == "allOf" else "one choice of "
        elif word in NAMED:
            next(words)
            path += ".*"
        elif not word.isdecimal():  # as of the first item and the second
            path += ".*"
    return part + (format_value(path.removeprefix(".")) if path else "the parameters as a whole")
