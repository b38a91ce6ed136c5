"""Events of Anthropic Messages: a message that begins, its blocks, and why it ends."""

from __future__ import annotations

from typing import Any, ClassVar

from unitools.dialects import model_json
from unitools.dialects.streams.base import Chunk, TextBuffer, get_index
from unitools.strict_json import JsonRefused

KINDS = frozenset({"ping", "message_start", "message_delta", "message_stop"})
# The kind of a delta: its field, and the block's that it goes on.
TEXTS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "input_json_delta": ("partial_json", "input"),
}


def is_chunk(chunk: Chunk) -> bool:
    kind = chunk.get("type")
    return isinstance(kind, str) and (kind in KINDS or kind.startswith("content_block_"))


class _Block:
    def __init__(self, start: object) -> None:
        self.start: dict[str, Any] = dict(start) if isinstance(start, dict) else {}
        self.texts: dict[str, TextBuffer] = {}
        self.citations: list[Any] = []
        self.ended = False

    def add(self, delta: object) -> None:
        if not isinstance(delta, dict):
            return
        if (fields := TEXTS.get(delta.get("type", ""))) is not None:
            said, name = fields
            self.texts.setdefault(name, TextBuffer()).add(delta.get(said))
        elif delta.get("type") == "citations_delta":
            self.citations.append(delta.get("citation"))

    def build(self) -> dict[str, Any]:
        block = dict(self.start)
        for name, buffer in self.texts.items():
            if name != "input":
                block[name] = f"{block.get(name) or ''}{buffer}"
            elif buffer:
                block[name] = _parse_input(str(buffer))
        return block | ({"citations": self.citations} if self.citations else {})


def _parse_input(text: str) -> Any:
    """The arguments as the object that a whole message holds; as text where they are none, which their reader refuses or repairs."""
    try:
        return model_json.load_json(text)
    except JsonRefused:
        return text


class MessageCollector:
    """The events of one message."""

    dialect: ClassVar[str] = "anthropic"

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, _Block] = {}

    @property
    def is_complete(self) -> bool:
        return bool(self._message.get("stop_reason")) and all(block.ended for block in self._blocks.values())

    def add(self, chunk: Chunk) -> None:
        kind = chunk.get("type")
        if kind == "message_start":
            self._change(chunk.get("message"))
        elif kind == "message_delta":
            self._change(chunk.get("delta"))
            self._change({"usage": chunk.get("usage")})
        elif kind == "content_block_start":
            self._blocks[get_index(chunk)] = _Block(chunk.get("content_block"))
        elif kind == "content_block_delta":
            self._blocks.setdefault(get_index(chunk), _Block({"type": "text"})).add(chunk.get("delta"))
        elif kind == "content_block_stop":
            self._blocks.setdefault(get_index(chunk), _Block({"type": "text"})).ended = True

    def _change(self, said: object) -> None:
        if isinstance(said, dict):
            self._message |= {name: value for name, value in said.items() if name not in {"usage", "content"}}
            if isinstance(said.get("usage"), dict):
                self._usage |= {name: value for name, value in said["usage"].items() if value is not None}

    def build_response(self) -> dict[str, Any]:
        content = [block.build() for _, block in sorted(self._blocks.items())]
        return {"type": "message", "role": "assistant", **self._message, "content": content, "usage": self._usage}
