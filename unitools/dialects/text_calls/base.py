"""Form of calls in text: what each must find, and which of what is found may be run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from unitools.calls import CallProblem
from unitools.dialects.arguments import CUT, Arguments, read_text, refuse_arguments
from unitools.dialects.model_json import load_json
from unitools.dialects.parsers.proposals import Proposal
from unitools.dialects.schemas import list_types
from unitools.dialects.text_calls.fences import list_fenced
from unitools.strict_json import JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from unitools.dialects.base import ReadOptions

QUOTED = (
    "The call stands amid other text or in a code fence, as a quotation would, so it was not run. Write calls at the end of the "
    "answer, outside of code fences, and nothing after them."
)
SHAPE = "The call was not run: it is not written as calls of this form are."
TWICE = "The call was not run: it gives a parameter twice."
# What a server may leave of the end of an answer.
_END = re.compile(r"(?:\s|<\|(?:eot_id|eom_id|im_end|end|endoftext)\|>|</s>|<｜end▁of▁sentence｜>)*+\Z")


@dataclass(frozen=True, slots=True)
class TextCall:
    """One call that a text holds, from ``start`` to ``end``."""

    start: int
    end: int
    name: object = ""
    arguments: object = None  # JSON text, or an object
    raw: Mapping[str, str] | None = None  # parameters as bare text, which the schema makes values of
    id: str = ""
    closed: bool = True
    why: str = ""  # what is wrong with it


class TextForm(Protocol):
    """One form."""

    def looks_alike(self, text: str) -> bool:
        """Whether a text seems to hold a call of this form."""

    def scan(self, text: str) -> list[TextCall]:
        """The calls in the text, in order, wherever they stand; no more than one response may have (``proposals.MOST``). In a
        time that grows as the text does."""

    def frame_result(self, said: str) -> str:
        """A result (JSON) as the model was trained to read it."""


def build_proposals(text: str, calls: Sequence[TextCall], reading: ReadOptions, *, cut: bool) -> Iterator[Proposal]:
    """Those that may be run are the last thing in the text, with nothing but space between them, outside of a code fence. Where one is
    not closed the answer was cut, and then none is run: the calls of an answer are often meant to be made together."""
    cut = cut or not all(call.closed for call in calls)
    last = _find_last_run(text, calls)
    fenced = list_fenced(text, [(call.start, call.end) for call in calls])
    for at, call in enumerate(calls):
        if cut:
            yield Proposal(call.name, id=call.id, refused=refuse_arguments(JsonRefused("truncated", CUT)))
        elif at < last or fenced[at]:
            yield Proposal(call.name, id=call.id, refused=Arguments(None, CallProblem.FENCED, QUOTED))
        elif call.why:
            yield Proposal(call.name, id=call.id, refused=Arguments(None, CallProblem.MALFORMED, call.why))
        elif call.raw is not None:
            schema = reading.schemas.get(reading.names.get(str(call.name), str(call.name)), {})
            yield Proposal(call.name, cast_texts(call.raw, schema), call.id)
        else:
            yield Proposal(call.name, call.arguments, call.id)


def _find_last_run(text: str, calls: Sequence[TextCall]) -> int:
    """The place of the first call of those with which the text ends."""
    if not calls or not _END.match(text, calls[-1].end):
        return len(calls)
    first = len(calls) - 1
    while first and not text[calls[first - 1].end : calls[first].start].strip(" \t\r\n;,"):
        first -= 1
    return first


def read_object(text: str, start: int, end: int, *, names: Sequence[str] = ("arguments", "parameters")) -> TextCall:
    """A call that is one JSON object: its name, and its arguments under one of ``names``."""
    try:
        value, _ = read_text(text[start:end])
    except JsonRefused as refusal:
        return TextCall(start, end, why=f"The call cannot be read: {refusal}")
    return build_object_call(value, start, end, names=names)


def build_object_call(
    value: Any, start: int, end: int, *, names: Sequence[str] = ("arguments", "parameters")
) -> TextCall:
    if not isinstance(value, dict) or not value.keys() <= {"name", "id", "type", *names}:
        return TextCall(start, end, why=SHAPE)
    given = [value[each] for each in names if each in value]
    if len(given) > 1 or not isinstance(value.get("name"), str):
        return TextCall(start, end, why=SHAPE)
    id = value.get("id")
    return TextCall(start, end, value["name"], given[0] if given else {}, id=id if isinstance(id, str) else "")


def cast_texts(texts: Mapping[str, str], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Bare texts as what the tool's schema says that they are: text where it may be text, else JSON where it is some."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: _cast(text, properties.get(name)) for name, text in texts.items()}


def _cast(text: str, schema: Any) -> Any:
    types = _types(schema)
    if "string" in types:
        return None if "null" in types and text == "null" else text
    try:
        return load_json(text)
    except JsonRefused:
        return text


def _types(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    found = set(list_types(schema))
    return found.union(*(_types(each) for each in schema.get("anyOf", ())))
