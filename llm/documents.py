"""Documents: JSON bodies, read as the types of this layer or refused with the place of each mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ConfigDict, Discriminator, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from kernel.problems import SchemaInvalid
from unitools.checks.findings import format_pointer, format_sentence

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

MAX_FINDINGS = 20
# Nothing unknown is dropped, nothing is quoted: what a caller wrote may be a prompt.
RULES = ConfigDict(extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)
# Sentences of pydantic that are about Python.
SENTENCES = {
    "unexpected_keyword_argument": "There is no such field.",
    "missing": "This field is needed.",
    "dataclass_type": "This is an object.",
    "tuple_type": "This is a list.",
    "dict_type": "This is an object.",
    "mapping_type": "This is an object.",
}

T = TypeVar("T")


def refuse_field(message: str, at: Iterable[str | int] = ()) -> PydanticCustomError:
    """The error of a value that may not be: a sentence, and where in the field it is if not at its beginning."""
    return PydanticCustomError("refused", "{message}", {"message": message, "at": tuple(at)})


def build_tag(kind: str) -> str:
    """The name of one of several types. It stands in the place of a mistake, where :func:`_find_place` takes it out again."""
    return f"<{kind}>"


def build_discriminator(field: str, kinds: Iterable[str]) -> Discriminator:
    """What tells several types apart: the value of a field that each of them has."""

    def find_tag(value: object) -> str:
        kind = value.get(field) if isinstance(value, dict) else getattr(value, field, None)
        return build_tag(kind) if isinstance(kind, str) else ""

    message = f"This needs a `{field}`: {', '.join(kinds)}."
    return Discriminator(find_tag, custom_error_type="kind", custom_error_message=message)


def read_document(kind: type[T], document: object) -> T:
    """A document as a value of that type.

    Raises:
        SchemaInvalid: with a finding for each mistake.
    """
    try:
        value: T = TypeAdapter(kind).validate_python(document)
    except ValidationError as error:
        raise describe_mistakes(error) from None
    return value


def describe_mistakes(error: ValidationError) -> SchemaInvalid:
    """The mistakes as callers of the hub are told them. No value is quoted."""
    mistakes = _leave_out_consequences(error.errors(include_url=False, include_input=False))[:MAX_FINDINGS]
    findings = [{"pointer": _find_place(each), "message": _describe_mistake(each)} for each in mistakes]
    place, message = findings[0]["pointer"], findings[0]["message"]
    return SchemaInvalid(f"At {place}: {message}" if place else message, details={"findings": findings})


def _leave_out_consequences(mistakes: list[ErrorDetails]) -> list[ErrorDetails]:
    """A list is called too short also where its items are there and have mistakes of their own."""
    return [
        each
        for each in mistakes
        if each["type"] != "too_short"
        or all(other is each or other["loc"][: len(each["loc"])] != each["loc"] for other in mistakes)
    ]


def _describe_mistake(mistake: ErrorDetails) -> str:
    return SENTENCES.get(mistake["type"]) or format_sentence(mistake["msg"].replace("Tuple", "The list", 1))


def _find_place(mistake: ErrorDetails) -> str:
    context: dict[str, Any] = mistake.get("ctx", {})
    parts = [part for part in mistake["loc"] if part != "[key]" and not str(part).startswith("<")]
    return format_pointer((*parts, *context.get("at", ())))
