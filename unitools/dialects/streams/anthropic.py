"""Events of Anthropic Messages: a message that begins, its blocks, and why it ends."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from unitools.dialects import model_json
from unitools.dialects.streams.base import Chunk, CollectedText, get_chunk, get_index, get_word, leave_out
from unitools.strict_json import JsonRefused

KINDS = frozenset({"ping", "message_start", "message_delta", "message_stop"})
# The kind of a delta: its field, and the block's that it goes on.
TEXTS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


class _Block:
    def __init__(self) -> None:
        self.start: dict[str, Any] = {"type": "text"}
        self.texts: defaultdict[str, CollectedText] = defaultdict(CollectedText)
        self.citations: list[Any] = []
        self.ended = False

    def add(self, delta: Chunk) -> None:
        kind = get_word(delta, "type")
        if kind in TEXTS:
            said, name = TEXTS[kind]
            self.texts[name].add(delta.get(said))
        elif kind == "citations_delta":
            self.citations.append(delta.get("citation"))

    def build(self) -> dict[str, Any]:
        block = dict(self.start)
        for name, text in self.texts.items():
            if name != "input":
                block[name] = f"{get_word(block, name)}{text}"
            elif text:
                block[name] = _parse_input(str(text))
        return block | ({"citations": self.citations} if self.citations else {})


def _parse_input(text: str) -> Any:
    """The arguments as the object that a whole message holds; as text where they are none, which their reader refuses or repairs."""
    try:
        value = model_json.load_json(text)
    except JsonRefused:
        return text
    return value if isinstance(value, dict) else text


class MessageCollector:
    """The events of one message."""

    dialect: ClassVar[str] = "anthropic"

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: defaultdict[int, _Block] = defaultdict(_Block)

    @staticmethod
    def may_begin(chunk: Chunk) -> bool:
        kind = get_word(chunk, "type")
        return kind in KINDS or kind.startswith("content_block_")

    @property
    def is_complete(self) -> bool:
        return bool(self._message.get("stop_reason")) and all(block.ended for block in self._blocks.values())

    def add(self, chunk: Chunk) -> None:
        kind = get_word(chunk, "type")
        if kind == "message_start":
            self._change(get_chunk(chunk, "message"))
        elif kind == "message_delta":
            self._change(get_chunk(chunk, "delta"))
            self._count(get_chunk(chunk, "usage"))
        elif kind.startswith("content_block_"):
            block = self._blocks[get_index(chunk) or 0]
            if kind == "content_block_start":
                block.start = get_chunk(chunk, "content_block")
            elif kind == "content_block_delta":
                block.add(get_chunk(chunk, "delta"))
            block.ended = kind == "content_block_stop"

    def _change(self, said: Chunk) -> None:
        self._message |= leave_out(said, "usage", "content")
        self._count(get_chunk(said, "usage"))

    def _count(self, usage: Chunk) -> None:
        self._usage |= {name: value for name, value in usage.items() if value is not None}

    def build_response(self) -> dict[str, Any]:
        content = [block.build() for _, block in sorted(self._blocks.items())]
        return {"type": "message", "role": "assistant", **self._message, "content": content, "usage": self._usage}
