"""Anthropic Messages: the hub's models for clients that speak as Anthropic's does.

A proposal goes out when it is whole, text as it comes. What a provider wants back of its reasoning goes out as redacted thinking.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from llm.answers import FinishReason
from llm.problems import ProviderAnswerUnreadable
from llm.served.anthropic_requests import PARAMETERS, read_messages
from llm.served.events import write_event
from llm.served.openai_chat import read_text, write_hub
from llm.served.problem_objects import find_status, write_beside, write_error
from llm.served.provider_states import write_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.problems import Problem
    from llm.answers import ChatDelta
    from llm.served.formats import Answered, ServedChat
    from llm.served.parameters import Parameter

STOP_REASONS = {
    "stop": "end_turn",
    "tool": "tool_use",
    "length": "max_tokens",
    "safety": "refusal",
    "other": "max_tokens",  # not whole, and no word for why
}
ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
UNUSABLE = "The model proposed a call whose arguments cannot be read, so nothing of its answer is used."
OVERLOADED = 529  # where others say 503


def write_usage(usage: dict[str, Any]) -> dict[str, Any]:
    """Tokens that were read from a cache are counted apart here; elsewhere they are a part of the input."""
    cached = usage["cached_tokens"]
    return {
        "input_tokens": usage["input_tokens"] - cached,
        "output_tokens": usage["output_tokens"],
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": None,
        "cache_creation": None,
        "output_tokens_details": None,
        "server_tool_use": None,
        "service_tier": None,
        "inference_geo": None,
    }


ENDED = {"stop_sequence": None, "stop_details": None, "container": None}
NOTHING_USED = write_usage({"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0})


def write_message(about: Answered, content: list[dict[str, Any]], stop: str | None, usage: Any) -> dict[str, Any]:
    return {
        "id": f"msg_{about.call_id}",
        "type": "message",
        "role": "assistant",
        "model": about.model,
        "content": content,
        "stop_reason": stop,
        "usage": usage,
        **ENDED,
    }


def write_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "citations": None}


def list_proposals(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls that a caller may make. An answer that is not whole has none: what is cut is not used.

    Raises:
        ProviderAnswerUnreadable: a whole answer has one whose arguments cannot be used. This format takes no other arguments than an
            object, and an empty one would be taken for the model's.
    """
    if not FinishReason(answer["finish_reason"]).is_whole:
        return []
    proposals: list[dict[str, Any]] = answer["proposals"]
    if any(each["arguments"] is None for each in proposals):
        raise ProviderAnswerUnreadable(UNUSABLE)
    return proposals


def list_last_blocks(answer: dict[str, Any], about: Answered) -> list[dict[str, Any]]:
    """What comes behind the text."""
    state = answer.get("provider_state")
    blocks = [{"type": "redacted_thinking", "data": write_state(state)}] if state is not None else []
    return blocks + [write_tool_use(each, about) for each in list_proposals(answer)]


def write_tool_use(proposal: dict[str, Any], about: Answered) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": proposal["call_id"],
        "name": about.name_tool(proposal["name"]),
        "input": proposal["arguments"],
        "caller": {"type": "direct"},
    }


class MessageStreamWriter:
    """One answer as Anthropic's events."""

    def __init__(self, about: Answered) -> None:
        self._about = about
        self._begun = self._text_open = False
        self._index = 0

    def add(self, delta: ChatDelta) -> str:
        if not delta.text:
            return self._begin()
        said = self._begin()
        if not self._text_open:
            self._text_open = True
            said += self._start_block(write_text(""))
        return said + self._write_delta({"type": "text_delta", "text": delta.text})

    def end(self, answer: dict[str, Any], warnings: tuple[str, ...] = ()) -> str:
        try:
            last = list_last_blocks(answer, self._about)
        except ProviderAnswerUnreadable as problem:
            return self.fail(problem)
        said, text = self._begin(), read_text(answer)
        if self._text_open:
            said += self._stop_block()
        elif text:
            said += self._start_block(write_text("")) + self._write_delta({"type": "text_delta", "text": text})
            said += self._stop_block()
        for block in last:
            if block["type"] != "tool_use":
                said += self._start_block(block) + self._stop_block()
                continue
            piece = {"type": "input_json_delta", "partial_json": json.dumps(block["input"], ensure_ascii=False)}
            said += self._start_block(block | {"input": {}}) + self._write_delta(piece) + self._stop_block()
        end = {"stop_reason": STOP_REASONS[answer["finish_reason"]], **ENDED}
        usage = write_usage(answer["usage"])
        hub = write_hub(answer, self._about, (*self._about.warnings, *warnings))
        return said + write_event("message_delta", delta=end, usage=usage, hub=hub) + write_event("message_stop")

    def fail(self, problem: Problem) -> str:
        """The hub's reason stands beside: the headers, which have it elsewhere, are sent."""
        hub = {"call_id": self._about.call_id} | write_beside(problem)
        return self._begin() + write_event("error", error=describe_problem(problem)[1], hub=hub)

    def _begin(self) -> str:
        if self._begun:
            return ""
        self._begun = True
        return write_event("message_start", message=write_message(self._about, [], None, NOTHING_USED))

    def _start_block(self, block: dict[str, Any]) -> str:
        return write_event("content_block_start", index=self._index, content_block=block)

    def _write_delta(self, delta: dict[str, Any]) -> str:
        return write_event("content_block_delta", index=self._index, delta=delta)

    def _stop_block(self) -> str:
        self._index += 1
        return write_event("content_block_stop", index=self._index - 1)


def describe_problem(problem: Problem) -> tuple[int, dict[str, Any]]:
    """The status and the error that Anthropic's clients know such a problem by."""
    status = OVERLOADED if problem.status == 503 else find_status(problem)
    usual = "invalid_request_error" if status < 500 else "api_error"
    return status, {"type": ERROR_TYPES.get(status, usual), "message": write_error(problem)["message"]}


class AnthropicMessages:
    """The format of ``/v1/messages``."""

    name: ClassVar = "anthropic-messages"
    parameters: ClassVar[tuple[Parameter, ...]] = PARAMETERS

    def read(self, body: Any) -> ServedChat:
        return read_messages(body)

    def write(self, answer: dict[str, Any], about: Answered) -> dict[str, Any]:
        """Raises ProviderAnswerUnreadable."""
        text = read_text(answer)
        content = [write_text(text)] if text else []
        content += list_last_blocks(answer, about)
        stop = STOP_REASONS[answer["finish_reason"]]
        message = write_message(about, content, stop, write_usage(answer["usage"]))
        return message | {"hub": write_hub(answer, about, about.warnings)}

    def open_stream(self, about: Answered, options: Mapping[str, Any]) -> MessageStreamWriter:
        return MessageStreamWriter(about)

    def write_problem(self, problem: Problem) -> tuple[int, dict[str, Any]]:
        status, error = describe_problem(problem)
        return status, {"type": "error", "error": error, "hub": write_beside(problem)}
