"""Responses: what is inside one, be it an SDK's object, a dict or JSON text. No SDK is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unitools.dialects.errors import UnknownResponse, UnreadableResponse

# How surely a response is of a dialect
SDK = 95  # a type of the provider's own package
WHOLE = 90  # the fields of a whole response
PART = 70  # a message, or a list of calls
WEAK = 30  # could be a part of it, and proposes nothing

CHUNK = "This is one chunk of a stream. Give all: its text, a list of its chunks, or what a StreamCollector has built."


@dataclass(frozen=True, slots=True)
class UnfoldedResponse:
    """A response of one dialect, unfolded."""

    score: int
    calls: Sequence[object] = ()  # in the dialect's own form
    text: str = ""  # what the model said beside them
    cut: bool = False  # it ended before it was complete
    trouble: str = ""  # why it cannot be read


def get_field(thing: object, *names: str) -> Any:
    """The first of these keys or attributes that is there and not None. Raises UnreadableResponse where a property fails."""
    for name in names:
        try:
            value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        except Exception as error:  # noqa: BLE001 - an SDK's property may raise anything, and quote the answer
            raise UnreadableResponse(f"{name} of the response raises {type(error).__name__}.") from None
        if value is not None:
            return value
    return None


def get_items(thing: object) -> Sequence[Any] | None:
    """A list's items; None for anything else."""
    return thing if isinstance(thing, Sequence) and not isinstance(thing, (str, bytes, bytearray)) else None


def get_text(thing: object) -> str:
    """A string, or an enumeration's; empty for anything else."""
    value = thing.value if isinstance(thing, Enum) else thing
    return value if isinstance(value, str) else ""


def join_texts(parts: object, *kinds: str) -> str:
    """The text of content: as it is, or of its parts whose `type` is one of these."""
    if isinstance(parts, str):
        return parts
    return "".join(
        get_text(get_field(part, "text"))
        for part in get_items(parts) or ()
        if get_text(get_field(part, "type")) in kinds
    )


def is_from(thing: object, *packages: str) -> bool:
    """Is the thing of a class of one of these packages?"""
    module = type(thing).__module__
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def check_readable(answer: UnfoldedResponse | None, dialect: str) -> UnfoldedResponse:
    """The answer to take calls from. Raises UnknownResponse, UnreadableResponse."""
    if answer is None:
        raise UnknownResponse(f"The response is not of the dialect {dialect}.")
    if answer.trouble:
        raise UnreadableResponse(answer.trouble)
    return answer
