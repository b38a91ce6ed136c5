"""Arguments: those that a model meant, and whether they may be used.

Three rules, for text and for what an SDK had parsed already. Arguments that were cut are never used: the provider says so, or the
JSON is not closed. Broken JSON is repaired only where all that was opened is closed (:mod:`unitools.dialects.json_repair`), never for
a destructive tool, and it is said. JSON that readers understand differently (:mod:`unitools.strict_json`) is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from unitools.calls import CallProblem
from unitools.dialects import model_json
from unitools.dialects.json_repair import repair_json
from unitools.strict_json import JsonRefused

RAW = 4096  # characters of the arguments that are kept as they came

CUT = (
    "The arguments are not complete: the answer was cut, most often at its limit of tokens. Nothing was run. "
    "Make the call again, with shorter arguments or a higher limit."
)
EXACT = (
    "broken JSON is not repaired for a tool that can destroy things. Send exact JSON; {} if there is nothing to say."
)
NOT_AN_OBJECT = "this is no object with the tool's parameters as its keys."


@dataclass(frozen=True, slots=True)
class Arguments:
    """What came of reading: a value, or a problem and why."""

    value: dict[str, Any] | None
    problem: CallProblem | None = None
    why: str = ""
    fixes: tuple[str, ...] = ()  # what was repaired, each with its place


def refuse_arguments(refusal: JsonRefused) -> Arguments:
    why = CUT if refusal.code == CallProblem.TRUNCATED else f"The arguments cannot be used: {refusal}"
    return Arguments(None, CallProblem(refusal.code), why)


def read_text(text: str) -> tuple[Any, tuple[str, ...]]:
    """The value of one JSON text, and what had to be repaired.

    Raises:
        JsonRefused: with the code of a CallProblem.
    """
    try:
        return model_json.load_json(text), ()
    except JsonRefused as error:
        if error.code != "invalid_json":
            raise
        strict = error
    try:
        return repair_json(text)
    except JsonRefused as error:
        if error.code != "invalid_json":
            raise
    if model_json.scan_brackets(text).open:
        raise JsonRefused("truncated", CUT)
    raise strict


def read_arguments(given: object, *, cut: bool = False, destructive: bool = False) -> Arguments:
    """The arguments of a call, from JSON text or from an object.

    Args:
        given: text; "" and "null" mean no arguments, as None does. Or a mapping.
        cut: the provider said that its answer ended before it was complete.
        destructive: nothing is repaired, and an empty text is not taken for an empty object.
    """
    if cut:
        return refuse_arguments(JsonRefused("truncated", CUT))
    try:
        if given is None:
            return Arguments({})
        if not isinstance(given, str):
            return _object(model_json.copy_json(given))
        if given.strip(" \t\r\n") in {"", "null"}:
            return refuse_arguments(JsonRefused("invalid_json", EXACT)) if destructive else Arguments({})
        value, fixes = read_text(given)
        if isinstance(value, str) and value.lstrip(" \t\r\n").startswith("{"):
            value, fixes = model_json.load_json(value), (*fixes, "an object that was encoded twice")
    except JsonRefused as refusal:
        return refuse_arguments(refusal)
    if fixes and destructive:
        return refuse_arguments(JsonRefused("invalid_json", EXACT))
    return _object(value, fixes)


def _object(value: object, fixes: tuple[str, ...] = ()) -> Arguments:
    if not isinstance(value, dict):
        return refuse_arguments(JsonRefused("not_an_object", NOT_AN_OBJECT))
    return Arguments(value, fixes=fixes)


def get_raw_text(given: object) -> str:
    """The arguments as they came, the first of them; empty where they came as an object."""
    return given[:RAW] if isinstance(given, str) else ""
