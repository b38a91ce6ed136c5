"""Wire watches: what a stream of events itself says of its end, its usage and its model, read before any library reads it.

Libraries take a stream that breaks off for an answer, lose the reason of its end or fail at one that they do not know. So each line is
read here first: an error or a broken line is a problem at once, and a stream without the wire's last event is no answer.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

from llm.answers import FinishReason
from llm.problems import ProviderAnswerUnreadable, StreamTruncated
from llm.providers.failures import classify_frame
from llm.usage import Usage, read_figures
from unitools.dialects.streams.base import get_word

MAX_LINE_BYTES = 16 * 1024 * 1024
BROKEN = "The provider sent a line that cannot be read."


class WireWatch:
    """One stream. ``read_event`` is for each wire to write."""

    reasons: ClassVar[dict[str, FinishReason]] = {}

    def __init__(self) -> None:
        self.model = ""
        self.usage: Usage | None = None
        self.reason = ""  # in the wire's own word
        self.refused = False  # the model itself declined
        self.ended = False
        self._line = b""
        self._is_marked = False

    def feed(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        if len(self._line) > MAX_LINE_BYTES:
            raise ProviderAnswerUnreadable(BROKEN)
        for line in lines:
            if line.startswith(b"data:"):
                self._read_line(line[5:].strip())

    def _read_line(self, text: bytes) -> None:
        if self._is_marked:  # behind the mark nothing is a part of the answer
            return
        if text == b"[DONE]":
            self._is_marked = True
            self.end_by_mark()
            return
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise ProviderAnswerUnreadable(BROKEN) from None
        if not isinstance(document, dict):
            raise ProviderAnswerUnreadable(BROKEN)
        if document.get("error") or document.get("type") == "error":
            raise classify_frame(document)
        try:
            self.read_event(document)
        except (AttributeError, KeyError, TypeError, IndexError, ValueError):
            raise ProviderAnswerUnreadable(BROKEN) from None

    def read_event(self, document: dict[str, Any]) -> None:
        raise NotImplementedError

    def end_by_mark(self) -> None:
        """``[DONE]``, which only OpenAI's chat has for its end."""

    def finish(self) -> None:
        """The stream is over. Raises StreamTruncated."""
        if not self.ended or not self.reason:
            raise StreamTruncated

    @property
    def finish_reason(self) -> FinishReason:
        """A word that nobody has told us of is no end of a whole answer."""
        return FinishReason.SAFETY if self.refused else self.reasons.get(self.reason, FinishReason.OTHER)


class ChatWatch(WireWatch):
    """OpenAI Chat Completions. ``needs_mark``: the stream ends with ``[DONE]``, as OpenAI's does."""

    reasons: ClassVar = {
        "stop": FinishReason.STOP,
        "length": FinishReason.LENGTH,
        "tool_calls": FinishReason.TOOL,
        "function_call": FinishReason.TOOL,
        "content_filter": FinishReason.SAFETY,
    }

    def __init__(self, *, needs_mark: bool = True) -> None:
        super().__init__()
        self._needs_mark = needs_mark

    def read_event(self, document: dict[str, Any]) -> None:
        self.model = get_word(document, "model") or self.model
        if usage := document.get("usage"):
            counted = build_usage(usage, ("prompt_tokens", "completion_tokens"), "prompt_tokens_details")
            self.usage = counted and replace(counted, charged_usd=read_charge(usage.get("cost")))
        for choice in (document.get("choices") or ())[:1]:
            self.reason = get_word(choice, "finish_reason") or self.reason
            self.refused = self.refused or bool((choice.get("delta") or {}).get("refusal"))
        if self.reason and not self._needs_mark:
            self.ended = True

    def end_by_mark(self) -> None:
        self.ended = True


class MessageWatch(WireWatch):
    """Anthropic Messages, whose input tokens do not count those that were cached."""

    reasons: ClassVar = {
        "end_turn": FinishReason.STOP,
        "stop_sequence": FinishReason.STOP,
        "max_tokens": FinishReason.LENGTH,
        "model_context_window_exceeded": FinishReason.LENGTH,
        "tool_use": FinishReason.TOOL,
        "refusal": FinishReason.SAFETY,
    }

    def __init__(self) -> None:
        super().__init__()
        self._counted: dict[str, Any] = {}

    def read_event(self, document: dict[str, Any]) -> None:
        match document["type"]:
            case "message_start":
                self.model = document["message"].get("model") or ""
                self._count(document["message"].get("usage"))
            case "message_delta":
                self.reason = document["delta"].get("stop_reason") or self.reason
                self._count(document.get("usage"))
            case "message_stop":
                self.ended = True

    def _count(self, usage: dict[str, Any] | None) -> None:
        """Figures are sums so far; those that are not said again stay."""
        self._counted |= {name: value for name, value in (usage or {}).items() if isinstance(value, int | float)}
        if self._counted:
            count = self._counted.get
            cached = count("cache_read_input_tokens", 0)
            kept = count("cache_creation_input_tokens", 0)
            read = count("input_tokens", 0) + cached + kept
            self.usage = read_figures(read, count("output_tokens", 0), cached, kept)


class ResponseWatch(WireWatch):
    """OpenAI Responses."""

    reasons: ClassVar = {
        "completed": FinishReason.STOP,
        "max_output_tokens": FinishReason.LENGTH,
        "content_filter": FinishReason.SAFETY,
    }

    def read_event(self, document: dict[str, Any]) -> None:
        kind, response = document["type"], document.get("response") or {}
        self.model = response.get("model") or self.model
        self.refused = self.refused or kind == "response.refusal.delta"
        if kind == "response.failed":
            raise classify_frame(response)
        if kind in {"response.completed", "response.incomplete"}:
            self.ended = True
            self.reason = (response.get("incomplete_details") or {}).get("reason") or kind.removeprefix("response.")
            if usage := response.get("usage"):
                self.usage = build_usage(usage, ("input_tokens", "output_tokens"), "input_tokens_details")


def build_usage(counted: dict[str, Any], names: tuple[str, str], details: str) -> Usage | None:
    """OpenAI's figures: those of the cache are a part of the input."""
    read, written = (counted.get(name) or 0 for name in names)
    return read_figures(read, written, (counted.get(details) or {}).get("cached_tokens") or 0)


def read_charge(cost: object) -> Decimal | None:
    """What a router says that it charges, in US dollars; None for what is no amount."""
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1_000_000:
        return None
    return Decimal(str(cost))
