"""Proposals: the calls of a response, each with an id of its own and the registry's name."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from unitools.calls import CallProblem, ToolCall, to_json
from unitools.dialects.arguments import EXACT, Arguments, get_raw_text, read_arguments, refuse_arguments
from unitools.dialects.errors import ResponseTooLarge
from unitools.dialects.left_out import drop_left_out
from unitools.dialects.parsers.responses import get_field
from unitools.strict_json import JsonRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from unitools.calls import ToolResult
    from unitools.dialects.base import ReadOptions
    from unitools.dialects.parsers.responses import UnfoldedResponse

LONGEST = 512  # characters of a name or of our id; the provider's goes back as it came, for some put data into it
MOST = 1000  # calls of one response

SAME_ID = "An earlier call of this answer has the same id, so this one was not run. Give each call an id of its own."
NO_NAME = "The call does not say which tool it means."


@dataclass(frozen=True, slots=True)
class Proposal:
    """One call as a dialect said it."""

    name: object
    arguments: object = None
    id: object = None
    cut: bool = False
    meta: Any = None
    refused: Arguments | None = None  # what the dialect found wrong with it already
    fixes: tuple[str, ...] = ()  # what the dialect repaired around the arguments


def shorten_text(thing: object) -> str:
    return thing[:LONGEST] if isinstance(thing, str) else ""


def build_calls(proposals: Iterable[Proposal], reading: ReadOptions) -> list[ToolCall]:
    """The calls in their order. The second of two with one id is told apart and not to be run. Raises ResponseTooLarge."""
    proposals = list(proposals)
    if len(proposals) > MOST:
        raise ResponseTooLarge(f"The response cannot be read: it proposes more than {MOST} calls.")
    fresh = _fresh_ids({each.id for each in proposals if isinstance(each.id, str)})
    seen: set[str] = set()
    calls = []
    for each, other in zip(proposals, fresh, strict=False):
        id, provider_name = each.id if isinstance(each.id, str) else "", shorten_text(each.name)
        name = reading.names.get(provider_name, provider_name)
        read = _read(each, name in reading.destructive)
        if read.value and name in reading.schemas:
            read = replace(read, value=drop_left_out(read.value, reading.schemas[name]))
        if id in seen:
            read = Arguments(None, CallProblem.DUPLICATE_ID, SAME_ID)
        calls.append(
            ToolCall(
                id=other if not id or id in seen or len(id) > LONGEST else id,
                name=name,
                arguments=read.value,
                raw=get_raw_text(each.arguments),
                problem=read.problem,
                repaired=bool(read.fixes),
                provider_id=id,
                provider_name=provider_name,
                meta=each.meta,
                why=read.why,
            )
        )
        seen |= {id} - {""}
    return calls


def build_flat_calls(
    answer: UnfoldedResponse, reading: ReadOptions, *, arguments: str, id: str = "id"
) -> list[ToolCall]:
    """Those of a dialect in which a call is one object with a name; ``arguments`` and ``id`` are the fields of the rest."""
    return build_calls(
        (
            Proposal(get_field(each, "name"), get_field(each, arguments), get_field(each, id), cut=answer.cut)
            for each in answer.calls
        ),
        reading,
    )


def _read(each: Proposal, destructive: bool) -> Arguments:
    if each.refused:
        return each.refused
    if not isinstance(each.name, str) or not 0 < len(each.name) <= LONGEST:
        return Arguments(None, CallProblem.MALFORMED, NO_NAME)
    if each.fixes and destructive:
        return refuse_arguments(JsonRefused("invalid_json", EXACT))
    read = read_arguments(each.arguments, cut=each.cut, destructive=destructive)
    return replace(read, fixes=each.fixes + read.fixes) if read.problem is None else read


def _fresh_ids(given: set[str]) -> Iterator[str]:
    """call_1, call_2, … by the place in the response; with a mark behind where a provider took that one."""
    number = 0
    while True:
        number += 1
        id = f"call_{number}"
        while id in given:
            id += "_"
        yield id


def get_answered_call(result: ToolResult) -> ToolCall:
    """The call that a result answers. Raises ValueError if it answers none."""
    if result.call is None:
        raise ValueError("A result without its call answers nothing: give ToolResult its `call`.")
    return result.call


def get_wire_id(call: ToolCall) -> str:
    """The id by which the provider knows the call."""
    return call.provider_id or call.id


def convert_to_json(value: Any) -> Any:
    """A result as JSON has it; NaN and Infinity as their names."""
    return json.loads(to_json(value), parse_constant=str)
