"""Structured output: the JSON that a model was asked for, read strictly, mended where that is clear, and held against its schema.

The order is fixed: read strictly; mend slips that have one meaning (:mod:`unitools.dialects.json_repair`), and text around a single
document; hold against the schema; ask the model once more, naming the mistakes; refuse. An answer that is not whole is not read at
all, for the beginning of a document can be a document of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from kernel.problems import SchemaInvalid
from llm.answers import FinishReason
from llm.messages import Text, UserMessage
from llm.output_schemas import get_validator
from llm.problems import OutputTruncated, SafetyBlocked
from llm.requests import MAX_KEY, JsonFormat, SchemaFormat, TextFormat
from unitools.checks.findings import format_pointer
from unitools.checks.schemas import describe_violation
from unitools.dialects.json_repair import MAX_CHARACTERS, repair_json
from unitools.dialects.model_json import MAX_DEPTH, load_json, scan_brackets
from unitools.strict_json import JsonRefused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from llm.answers import ChatAnswer
    from llm.requests import ChatRequest

MAX_BYTES = 1024 * 1024
MAX_FINDINGS = 20
LONG = 32 * 1024  # characters that take so long to mend that other answers would wait
MAX_POINTER = 200

AROUND = "text around the document"
AGAIN = ":2"  # behind an idempotency key
_BRACKET = re.compile(r"[\[{]")
_FENCED = re.compile(r"```[A-Za-z0-9]*[ \t]*\r?\n.*?\r?\n?```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class OutputFinding:
    """One mistake of a document: where it is, which keyword of the schema it breaks, and a sentence. The value is not quoted."""

    pointer: str
    keyword: str
    message: str

    def to_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "keyword": self.keyword, "message": self.message}


class OutputRefused(ValueError):
    """A document that is not what was asked for."""

    def __init__(self, *findings: OutputFinding) -> None:
        super().__init__(findings[0].message)
        self.findings = findings


def read_output(text: str, wanted: JsonFormat | SchemaFormat) -> tuple[Any, tuple[str, ...]]:
    """The value of a whole answer, and what had to be mended.

    Raises:
        OutputRefused: it is no JSON, or not what the schema asks for.
    """
    try:
        value, repairs = _read_json(text, strict=wanted.json_strict)
    except JsonRefused as refusal:
        raise OutputRefused(OutputFinding("", refusal.code, _describe_refusal(refusal))) from None
    if isinstance(wanted, SchemaFormat):
        _check_value(value, wanted)
    return value, repairs


def _describe_refusal(refusal: JsonRefused) -> str:
    """A sentence for the model. A key that is there twice is not named: it is the model's own text."""
    return f"The answer must be one JSON document, but {refusal}"


def _read_json(text: str, *, strict: bool) -> tuple[Any, tuple[str, ...]]:
    try:
        return load_json(text, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH), ()
    except JsonRefused as refusal:
        # What JSON can say and not everybody understands alike, such as NaN or a key twice, has no one meaning to mend.
        if strict or refusal.code != "invalid_json":
            raise
    try:
        return repair_json(text)
    except JsonRefused as refusal:
        if refusal.code != "invalid_json" or (document := _cut_out(text)) is None:
            raise
    value, repairs = repair_json(document)
    return value, (AROUND, *repairs)


def _cut_out(text: str) -> str | None:
    """The one document that a text holds; None if it holds none or more."""
    if len(text) > MAX_CHARACTERS:
        return None
    if len(fenced := _FENCED.findall(text)) == 1 and text.count("```") == 2:
        return str(fenced[0])
    if (first := _BRACKET.search(text)) is None:
        return None
    document = text[first.start() :]
    end = scan_brackets(document).end
    return document[:end] if end and not _BRACKET.search(document, end) else None


def _check_value(value: Any, wanted: SchemaFormat) -> None:
    errors = list(islice(get_validator(wanted.json_schema).iter_errors(value), MAX_FINDINGS))
    if errors:
        raise OutputRefused(
            *(
                OutputFinding(
                    format_pointer(each.instance_path)[:MAX_POINTER], each.kind.name, describe_violation(each)
                )
                for each in errors
            )
        )


def build_second_request(request: ChatRequest, refused: OutputRefused) -> ChatRequest:
    """The same conversation with the mistakes of a first answer. That is not repeated: a model copies what it is shown."""
    mistakes = "\n".join(f"- {each.pointer or 'the document'}: {each.message}" for each in refused.findings)
    text = (
        f"A first answer to this was refused:\n{mistakes}\n"
        "Answer again, with one complete JSON document without these mistakes and nothing else."
    )
    # Under the key of the first request a provider would send its first answer once more.
    key = request.idempotency_key and f"{request.idempotency_key[: MAX_KEY - len(AGAIN)]}{AGAIN}"
    return replace(request, messages=(*request.messages, UserMessage((Text(text),))), idempotency_key=key)


async def obtain_output(request: ChatRequest, ask: Callable[[ChatRequest], Awaitable[ChatAnswer]]) -> ChatAnswer:
    """The answer, with its value where the request asks for JSON. The model is asked at most twice; both count in the usage.

    An answer that proposes calls has no value yet: it comes once they are answered.

    Raises:
        OutputTruncated: the answer is not whole.
        SafetyBlocked: the provider stopped it.
        SchemaInvalid: the second answer is not what was asked for either.
    """
    answer, wanted = await ask(request), request.response_format
    if isinstance(wanted, TextFormat):
        return answer
    try:
        return await _read_answer(answer, wanted)
    except OutputRefused as refused:
        second = await ask(build_second_request(request, refused))
    usage = answer.usage + second.usage if answer.usage and second.usage else None
    try:
        return await _read_answer(replace(second, usage=usage), wanted)
    except OutputRefused as refused:
        raise SchemaInvalid(
            "The model's answer is not the JSON that was asked for, and neither was its first one.",
            details={"findings": [each.to_json() for each in refused.findings]},
            remedy="Make the schema simpler, say in the messages what is wanted, or choose a stronger model.",
        ) from None


async def _read_answer(answer: ChatAnswer, wanted: JsonFormat | SchemaFormat) -> ChatAnswer:
    if answer.finish_reason is FinishReason.SAFETY:
        raise SafetyBlocked
    if not answer.finish_reason.is_whole:
        raise OutputTruncated
    if answer.proposals:
        return answer
    in_thread = len(answer.text) > LONG
    read = await to_thread.run_sync(read_output, answer.text, wanted) if in_thread else read_output(answer.text, wanted)
    value, repairs = read
    return replace(answer, output=value, repairs=repairs)
