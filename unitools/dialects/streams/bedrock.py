"""Events of Bedrock's ConverseStream: a message that begins, its blocks, and why it ends. Each is an object with one key."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from unitools.dialects import model_json
from unitools.dialects.errors import UnreadableResponse
from unitools.dialects.streams.base import Chunk, CollectedText, get_chunk, get_index, get_word, leave_out
from unitools.strict_json import JsonRefused

KINDS = frozenset({"messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop"})


class _Block:
    def __init__(self) -> None:
        self.call: Chunk = {}
        self.input, self.text, self.reasoning = CollectedText(), CollectedText(), CollectedText()
        self.signature, self.redacted = "", None
        self.citations: list[Any] = []
        self.ended = False

    def add(self, delta: Chunk) -> None:
        self.text.add(delta.get("text"))
        self.input.add(get_chunk(delta, "toolUse").get("input"))
        reasoning = get_chunk(delta, "reasoningContent")
        self.reasoning.add(reasoning.get("text"))
        self.signature = get_word(reasoning, "signature") or self.signature
        self.redacted = reasoning.get("redactedContent", self.redacted)
        if "citation" in delta:
            self.citations.append(delta["citation"])

    def build(self) -> dict[str, Any]:
        if self.call:
            return {"toolUse": {**self.call, "input": _parse_input(str(self.input))}}
        if self.redacted is not None:
            return {"reasoningContent": {"redactedContent": self.redacted}}
        if self.reasoning or self.signature:
            text = {"text": str(self.reasoning)} | ({"signature": self.signature} if self.signature else {})
            return {"reasoningContent": {"reasoningText": text}}
        if self.citations:
            return {"citationsContent": {"content": [{"text": str(self.text)}], "citations": self.citations}}
        return {"text": str(self.text)}


def _parse_input(text: str) -> Any:
    """The arguments as the object that a whole response holds; as text where they are none, which their reader refuses or repairs."""
    try:
        value = model_json.load_json(text) if text else {}
    except JsonRefused:
        return text
    return value if isinstance(value, dict) else text


def _get_kind(chunk: Chunk) -> str:
    """The key; empty where there is none, or none that is text: what a caller puts together need not be JSON."""
    kind: object = next(iter(chunk), "")
    return kind if isinstance(kind, str) else ""


class ConverseCollector:
    """The events of one message."""

    dialect: ClassVar[str] = "bedrock"

    def __init__(self) -> None:
        self._blocks: defaultdict[int, _Block] = defaultdict(_Block)
        self._role = "assistant"
        self._end: dict[str, Any] = {}
        self._about: dict[str, Any] = {}

    @staticmethod
    def may_begin(chunk: Chunk) -> bool:
        return len(chunk) == 1 and (bool(chunk.keys() & KINDS) or _get_kind(chunk).endswith("Exception"))

    @property
    def is_complete(self) -> bool:
        return bool(self._end.get("stopReason")) and all(block.ended for block in self._blocks.values())

    def add(self, chunk: Chunk) -> None:
        kind = _get_kind(chunk)
        if kind.endswith("Exception"):
            raise UnreadableResponse(
                f"The stream ended with {kind[:64]}: the provider gave up the answer. Ask the model again."
            )
        said = get_chunk(chunk, kind)
        if kind == "messageStart":
            self._role = get_word(said, "role") or self._role
        elif kind == "messageStop":
            self._end = said
        elif kind == "metadata":
            self._about |= said
        elif kind in KINDS:
            block = self._blocks[get_index(said, "contentBlockIndex") or 0]
            if kind == "contentBlockStart":
                block.call = get_chunk(get_chunk(said, "start"), "toolUse")
            elif kind == "contentBlockDelta":
                block.add(get_chunk(said, "delta"))
            block.ended = kind == "contentBlockStop"

    def build_response(self) -> dict[str, Any]:
        content = [block.build() for _, block in sorted(self._blocks.items())]
        message = {"role": self._role, "content": content}
        return {"output": {"message": message}, **self._end, **leave_out(self._about, "output", "stopReason")}
