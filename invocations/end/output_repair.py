"""Output repair: how a tool's output is brought into the shape that its schema promises.

Only what the manifest allows (``output_repair``), only where validation has failed, and only what has one meaning: the validator
says what does not fit, each complaint has at most one repair, and the result must be valid. Whatever stands in a repaired output
stood in what the tool returned. A complaint inside ``anyOf`` or ``oneOf`` is not repaired: that would be a choice.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import jsonschema_rs

WRAP, COERCE, DROP_UNKNOWN = "wrap", "coerce", "drop_unknown"
MAX_ROUNDS = 8  # a repair may uncover what another one has to do
MAX_COMPLAINTS = 1000
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?")
_WORDS = {"true": True, "false": False}

Place = tuple[str | int, ...]
_NOT_REPAIRED = object()


class Repair(NamedTuple):
    """``pointer`` leads to where it was done; a name that the schema does not declare is ``*`` in it, since it is the tool's data."""

    pointer: str
    kind: str

    def to_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "kind": self.kind}


class RepairedOutput(NamedTuple):
    value: Any
    repairs: list[Repair]


def repair_output(
    value: Any, schema: dict[str, Any], validator: jsonschema_rs.Validator, allowed: Collection[str]
) -> RepairedOutput | None:
    """The output as the schema wants it, and what was done; None when it is valid as it is, or these repairs do not make it so."""
    done: list[tuple[Place, str]] = []
    for _ in range(MAX_ROUNDS):
        complaints = []
        for error in validator.iter_errors(value):
            complaints.append(error)
            if len(complaints) > MAX_COMPLAINTS:
                return None
        if not complaints:
            names = set(_declared(schema))
            return (
                RepairedOutput(value, [Repair(_pointer(place, names), kind) for place, kind in done]) if done else None
            )
        before, seen = len(done), set[Place]()
        places = [tuple(error.instance_path) for error in complaints]
        for error in sorted(complaints, key=lambda each: -len(each.instance_path)):
            place: Place = tuple(error.instance_path)
            if place in seen:
                continue
            known = {below[len(place)] for below in places if len(below) > len(place) and below[: len(place)] == place}
            found, kind = _repair_of(error, _at(value, place), schema, allowed, known)
            if found is not _NOT_REPAIRED:
                seen.add(place)
                value = _replaced(value, place, found)
                done.append((place, kind))
        if len(done) == before:
            return None
    return None


def _repair_of(
    error: jsonschema_rs.ValidationError,
    instance: Any,
    schema: dict[str, Any],
    allowed: Collection[str],
    known: Collection[str | int],
) -> tuple[Any, str]:
    """``instance``: what stands there now; deeper repairs of this round are in it. ``known``: what is complained about below it: a
    property that does not fit its schema counts as unevaluated too, and is not one that nobody declared.
    """
    name = error.kind.name
    if name in ("additionalProperties", "unevaluatedProperties") and isinstance(instance, dict):
        if DROP_UNKNOWN in allowed:
            unexpected = set(error.kind.unexpected) - set(known)  # type: ignore[attr-defined]  # of this kind
            if unexpected:
                return {each: below for each, below in instance.items() if each not in unexpected}, DROP_UNKNOWN
    elif name == "type":
        types = set(error.kind.types)  # type: ignore[attr-defined]  # of this kind
        if COERCE in allowed:
            coerced = _coerced(instance, types)
            if coerced is not _NOT_REPAIRED:
                return coerced, COERCE
        if WRAP in allowed and instance is not None:
            return _wrapped(instance, types, _schema_at(schema, error.schema_path[:-1]), schema), WRAP
    return _NOT_REPAIRED, ""


def _coerced(value: Any, types: set[str]) -> Any:
    """The same value as another type, where exactly one of those that are wanted can say it."""
    found: list[Any] = []
    if isinstance(value, str):
        if types & {"integer", "number"} and _INTEGER.fullmatch(value):
            found.append(int(value))
        elif "number" in types and _NUMBER.fullmatch(value):
            number = float(value)
            if math.isfinite(number) and Decimal(value) == Decimal(repr(number)):  # nothing is rounded away
                found.append(number)
        if "boolean" in types and value in _WORDS:
            found.append(_WORDS[value])
    elif isinstance(value, int | float) and not isinstance(value, bool) and "string" in types:
        found.append(json.dumps(value))
    return found[0] if len(found) == 1 else _NOT_REPAIRED


def _wrapped(value: Any, types: set[str], schema: Any, root: dict[str, Any]) -> Any:
    """The value as the only entry of a list, or as the one property that an object must have."""
    if types == {"array"}:
        return [value]
    if types == {"object"} and isinstance(schema, dict):
        needed = schema.get("required", [])
        if len(needed) == 1:
            wanted = schema.get("properties", {}).get(needed[0])
            if _type_of(value) & _types_of(_resolved(wanted, root)):
                return {needed[0]: value}
    return _NOT_REPAIRED


def _type_of(value: Any) -> set[str]:
    match value:
        case bool():
            return {"boolean"}
        case int():
            return {"integer", "number"}
        case float():
            return {"number", "integer"} if value.is_integer() else {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
    return {"object"}


def _types_of(schema: Any) -> set[str]:
    said = schema.get("type", []) if isinstance(schema, dict) else []
    return {said} if isinstance(said, str) else set(said)


def _resolved(schema: Any, root: dict[str, Any]) -> Any:
    """What a schema of references alone refers to."""
    for _ in range(MAX_ROUNDS):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = _schema_at(
            root, [part.replace("~1", "/").replace("~0", "~") for part in reference.removeprefix("#/").split("/")]
        )
    return None


def _schema_at(root: Any, path: list[str | int]) -> Any:
    """The validator names places in the document, with references followed."""
    for part in path:
        if isinstance(root, dict):
            root = root.get(str(part))
        elif isinstance(root, list) and str(part).isdigit() and int(part) < len(root):
            root = root[int(part)]
        else:
            return None
    return root


def _at(value: Any, place: Place) -> Any:
    for part in place:
        value = value[part]
    return value


def _replaced(value: Any, place: Place, new: Any) -> Any:
    """A copy with another value at one place."""
    if not place:
        return new
    head, rest = place[0], place[1:]
    if isinstance(value, list):
        index = int(head)
        return [*value[:index], _replaced(value[index], rest, new), *value[index + 1 :]]
    return value | {str(head): _replaced(value[str(head)], rest, new)}


def _declared(schema: Any) -> Iterator[str]:
    """The names of properties that a schema speaks of, wherever it does."""
    if isinstance(schema, dict):
        for word, below in schema.items():
            if word == "properties" and isinstance(below, dict):
                yield from below
            yield from _declared(below)
    elif isinstance(schema, list):
        for each in schema:
            yield from _declared(each)


def _pointer(place: Place, names: set[str]) -> str:
    said = (str(part) if isinstance(part, int) else part if part in names else "*" for part in place)
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in said)
