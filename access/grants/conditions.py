"""Grant conditions: whether the arguments of a call meet them.

A condition is data: ``{"pointer": "/currency", "op": "equals", "value": "EUR"}``. The pointer is a JSON Pointer (RFC 6901)
in which ``*`` stands for every element of a list. A value that is missing or of another type does not meet a condition: it
fails closed. No message here quotes an argument.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from kernel.canonical import encode_hash_input

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_CONDITIONS = 20
MAX_CONDITIONS_BYTES = 2048
MAX_POINTER = 200
MAX_CHOICES = 100
FIELDS = {"pointer", "op", "value"}
_POINTER = re.compile(r"(/([^/~]|~[01])*)+")
SCALAR: dict[str, Any] = {
    "nullable": True,
    "anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}],
}
_ALL = "*"

Finding = dict[str, str]


# What a condition's value may be.


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, bool)) or _is_number(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_tree(value: Any) -> bool:
    return isinstance(value, str) and _plain_path(value)


def _is_choice(value: Any) -> bool:
    return isinstance(value, list) and 0 < len(value) <= MAX_CHOICES and all(_is_scalar(each) for each in value)


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# When an argument meets it.


def _plain_path(text: str) -> bool:
    """Absolute, and without the segments by which it would lead elsewhere."""
    return text.startswith("/") and "\0" not in text and "\\" not in text and not {"..", "."} & set(text.split("/"))


def _same(found: Any, wanted: Any) -> bool:
    """Equality of JSON scalars: true is not 1, and 1 is 1.0."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if found is None or wanted is None:
        return found is wanted
    if _is_number(found) and _is_number(wanted):
        return bool(found == wanted)
    return isinstance(found, str) and isinstance(wanted, str) and found == wanted


def _within(found: Any, tree: str) -> bool:
    if not isinstance(found, str) or not _plain_path(found):
        return False
    parts, above = found.rstrip("/").split("/"), tree.rstrip("/").split("/")
    return parts[: len(above)] == above


def _length_of(found: Any) -> int | None:
    return len(found) if isinstance(found, (str, list)) else None


# op → (may this be its value, does a found value meet it, the sentence)
_Op = tuple["Callable[[Any], bool]", "Callable[[Any, Any], bool]", str]
OPS: dict[str, _Op] = {
    "equals": (_is_scalar, _same, "must be {value}"),
    "in": (_is_choice, lambda found, wanted: any(_same(found, each) for each in wanted), "must be one of {value}"),
    "at_most": (
        _is_number,
        lambda found, limit: _is_number(found) and found <= limit,
        "must be a number up to {value}",
    ),
    "at_least": (
        _is_number,
        lambda found, limit: _is_number(found) and found >= limit,
        "must be a number from {value} on",
    ),
    "starts_with": (
        _is_text,
        lambda found, start: isinstance(found, str) and found.startswith(start),
        "must be a text that starts with {value}",
    ),
    "within": (_is_tree, _within, "must be a path within {value}"),
    "length_at_most": (
        _is_length,
        lambda found, limit: (length := _length_of(found)) is not None and length <= limit,
        "must be a text or a list of at most {value}",
    ),
    "present": (lambda value: value is None, lambda *_: True, "must be given"),
    "absent": (lambda value: value is None, lambda *_: False, "must not be given"),
}
VALUES = {
    "equals": "a text, number, true, false or null",
    "in": f"a list of 1 to {MAX_CHOICES} texts, numbers, true, false or null",
    "at_most": "a number",
    "at_least": "a number",
    "starts_with": "a text that is not empty",
    "within": "an absolute path without '.' and '..'",
    "length_at_most": "a whole number from 0 on",
    "present": "nothing: leave `value` out",
    "absent": "nothing: leave `value` out",
}


def _describe_form(ops: str, value: dict[str, Any] | None, *, needed: bool = True) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["pointer", "op", *(["value"] if value and needed else [])],
        "properties": {
            "pointer": {
                "type": "string",
                "maxLength": MAX_POINTER,
                "pattern": f"^{_POINTER.pattern}$",
                "description": "Into the arguments; * is every element of a list.",
            },
            "op": {"type": "string", "enum": ops.split()},
        }
        | ({"value": value} if value else {}),
    }


# The forms of a condition as JSON Schema of OpenAPI 3.0: what the value may be depends on the operator.
CONDITION_FORMS = (
    _describe_form("equals", SCALAR, needed=False),
    _describe_form("in", {"type": "array", "minItems": 1, "maxItems": MAX_CHOICES, "items": SCALAR}),
    _describe_form("at_most at_least", {"type": "number"}),
    _describe_form("starts_with", {"type": "string", "minLength": 1}),
    _describe_form("within", {"type": "string", "format": "plain-path"}),
    _describe_form("length_at_most", {"type": "integer", "minimum": 0}),
    _describe_form("present absent", None),
)


def validate_conditions(conditions: Any) -> list[Finding]:
    """What is wrong with a list of conditions, with pointers into it; empty when nothing is."""
    if not isinstance(conditions, list):
        return [{"pointer": "", "message": "Conditions must be a list."}]
    if len(conditions) > MAX_CONDITIONS:
        return [{"pointer": "", "message": f"At most {MAX_CONDITIONS} conditions fit into a grant."}]
    found = [finding for number, each in enumerate(conditions) for finding in _findings(each, f"/{number}")]
    if not found and len(encode_hash_input(conditions)[1]) > MAX_CONDITIONS_BYTES:
        found.append({"pointer": "", "message": f"These conditions have more than {MAX_CONDITIONS_BYTES:,} bytes."})
    return found


def _findings(condition: Any, place: str) -> Iterator[Finding]:
    if not isinstance(condition, dict):
        yield {"pointer": place, "message": "A condition is an object with `pointer`, `op` and `value`."}
        return
    for name in sorted(set(condition) - FIELDS):
        message = "A condition has the fields pointer, op and value."
        yield {"pointer": f"{place}/{str(name)[:40]}", "message": message}
    pointer = condition.get("pointer")
    if not isinstance(pointer, str) or len(pointer) > MAX_POINTER or not _POINTER.fullmatch(pointer):
        message = "Name the argument by a JSON Pointer such as /items/0/price or /items/*/price."
        yield {"pointer": f"{place}/pointer", "message": message}
    op = condition.get("op")
    if not isinstance(op, str) or op not in OPS:
        yield {"pointer": f"{place}/op", "message": f"Use one of: {', '.join(OPS)}."}
    elif not OPS[op][0](condition.get("value")):
        yield {"pointer": f"{place}/value", "message": f"For {op} the value is {VALUES[op]}."}


def _found(pointer: str, arguments: Any) -> tuple[list[Any], bool]:
    """The values at a pointer, and whether one was there wherever the pointer leads."""
    values, whole = [arguments], True
    for token in pointer.split("/")[1:]:
        name, below = token.replace("~1", "/").replace("~0", "~"), []
        for value in values:
            if isinstance(value, dict) and name in value:
                below.append(value[name])
            elif isinstance(value, list) and name == _ALL:
                whole = whole and bool(value)
                below += value
            elif isinstance(value, list) and re.fullmatch(r"0|[1-9][0-9]{0,8}", name) and int(name) < len(value):
                below.append(value[int(name)])
            else:
                whole = False
        values = below
    return values, whole


def is_met(condition: dict[str, Any], arguments: Any) -> bool:
    """Whether every value at the pointer meets the condition. An operator that is not known here is not met."""
    values, whole = _found(condition["pointer"], arguments)
    if condition["op"] == "absent":
        return not values
    known = OPS.get(condition["op"])
    return known is not None and whole and all(known[1](value, condition.get("value")) for value in values)


def describe_condition(condition: dict[str, Any]) -> str:
    """The condition for people: what the argument must be."""
    known = OPS.get(condition["op"])
    wanted = condition.get("value")
    text = ", ".join(map(_shown, wanted)) if isinstance(wanted, list) else _shown(wanted)
    said = known[2].format(value=text) if known else f"must meet {condition['op']}, which this hub does not know"
    return f"{condition['pointer']} {said}."


def _shown(value: Any) -> str:
    return f"“{value}”" if isinstance(value, str) else encode_hash_input(value)[1].decode()


def list_unmet_conditions(conditions: list[dict[str, Any]], arguments: Any) -> list[dict[str, Any]]:
    """The conditions that the arguments do not meet, each with a sentence. What the arguments are is not repeated."""
    return [
        {
            "pointer": each["pointer"],
            "op": each["op"],
            "value": each.get("value"),
            "message": describe_condition(each),
        }
        for each in conditions
        if not is_met(each, arguments)
    ]
