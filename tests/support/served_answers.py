"""Served answers: answers of the hub for the formats to write, and the pieces that they came in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llm.answers import ChatDelta, FinishReason
from llm.served.formats import Answered

if TYPE_CHECKING:
    from llm.served.formats import ChatFormat

TEXT = "Größe 中 😀 <think> end"
STATE = {"provider": "anthropic", "data": [{"content": "", "signature": "sealed", "part_kind": "thinking"}]}
ABOUT = Answered(
    call_id="inv_1", model="model.script.main", created=1_760_000_000, names={"bank.accounts.pay": "bank_pay"}
)
PROPOSALS = [
    {"call_id": "c1", "name": "bank.accounts.pay", "arguments": {"to": "Zoë", "amount": 1.5}},
    {"call_id": "c2", "name": "weather", "arguments": {}},
]


def build_answer(
    text: str = TEXT, finish: str = "stop", proposals: list[dict[str, Any]] | None = None, **more: Any
) -> dict[str, Any]:
    """As the `data` of the hub's own envelope."""
    return {
        "text": text,
        "proposals": proposals or [],
        "finish_reason": finish,
        "timestamps": {"first_token_ms": 1, "finished_ms": 2_500},
        "model": "answered-1",
        "usage": {
            "input_tokens": 12,
            "output_tokens": 7,
            "cached_tokens": 4,
            "requests": 1,
            "counted_by": "provider",
            "cost_micros": 30,
            "price_version": "p1",
        },
        **more,
    }


ANSWERS = {
    "text": build_answer(),
    "nothing": build_answer(text=""),
    "calls": build_answer(text="", finish="tool", proposals=PROPOSALS),
    "text and calls": build_answer(finish="tool", proposals=PROPOSALS),
    "reasoning": build_answer(finish="tool", proposals=PROPOSALS, provider_state=STATE),
    "cut": build_answer(finish="length"),
    "cut in a call": build_answer(
        finish="length", proposals=[PROPOSALS[0] | {"arguments": None, "problem": "truncated"}]
    ),
    "stopped": build_answer(finish="safety"),
    "ended for no known reason": build_answer(finish="other"),
    "document": build_answer(text='```json\n{"a": [1, "é"]}\n```', output={"a": [1, "é"]}),
}


def build_deltas(answer: dict[str, Any]) -> list[ChatDelta]:
    """Pieces of four characters, and the end. None for a document, which is sent when it is whole."""
    if "output" in answer:
        return []
    text = answer["text"]
    pieces = [ChatDelta(text=text[at : at + 4], model="answered-1") for at in range(0, len(text), 4)]
    return [*pieces, ChatDelta(finish_reason=FinishReason(answer["finish_reason"]))]


def write_stream(served: ChatFormat, answer: dict[str, Any], about: Answered = ABOUT) -> str:
    writer = served.open_stream(about, {})
    return "".join([*map(writer.add, build_deltas(answer)), writer.end(answer)])
