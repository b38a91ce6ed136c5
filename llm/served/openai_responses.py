"""OpenAI Responses: the hub's models for clients that speak as OpenAI's newer interface does. The hub keeps no conversation.

A proposal goes out when it is known to be whole, text as it comes. What a provider wants back of its reasoning goes out as an item
with encrypted content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from llm.answers import FinishReason
from llm.served.events import write_event
from llm.served.openai_chat import read_text, write_arguments, write_hub
from llm.served.problem_objects import find_status, write_problem_object
from llm.served.provider_states import write_state
from llm.served.responses_requests import PARAMETERS, read_responses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.problems import Problem
    from llm.answers import ChatDelta
    from llm.served.formats import Answered, ServedChat
    from llm.served.parameters import Parameter

INCOMPLETE = {"length": "max_output_tokens", "safety": "content_filter"}
NOT_WHOLE = "other"
# What a request that says nothing else is answered with. Programs expect all of it.
USUAL: Mapping[str, Any] = {
    "error": None,
    "incomplete_details": None,
    "previous_response_id": None,
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "temperature": 1.0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "reasoning": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": False,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}


def write_response(about: Answered, status: str, output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    head = {"id": f"resp_{about.call_id}", "object": "response", "created_at": about.created, "completed_at": None}
    said = {"status": status, "model": about.model, "output": output, "usage": None}
    return {**USUAL, **about.options, **head, **said, **more}


def write_whole(answer: dict[str, Any], about: Answered, warnings: tuple[str, ...]) -> dict[str, Any]:
    """The response, with its items, once the answer is there."""
    is_whole = FinishReason(answer["finish_reason"]).is_whole
    reason = None if is_whole else {"reason": INCOMPLETE.get(answer["finish_reason"], NOT_WHOLE)}
    took_ms = answer["timestamps"]["finished_ms"]
    return write_response(
        about,
        "completed" if is_whole else "incomplete",
        list_items(answer, about),
        incomplete_details=reason,
        completed_at=about.created + (took_ms or 0) // 1000 if is_whole else None,
        usage=write_usage(answer["usage"]),
        hub=write_hub(answer, about, warnings),
    )


def write_usage(usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "input_tokens": usage["input_tokens"],
        "input_tokens_details": {"cached_tokens": usage["cached_tokens"]},
        "output_tokens": usage["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage["input_tokens"] + usage["output_tokens"],
    }


def list_items(answer: dict[str, Any], about: Answered) -> list[dict[str, Any]]:
    """Text, reasoning that is sent back, calls."""
    status = "completed" if FinishReason(answer["finish_reason"]).is_whole else "incomplete"
    items = [write_message_item(about, status, [write_part(text)])] if (text := read_text(answer)) else []
    if (state := answer.get("provider_state")) is not None:
        items.append(
            {"type": "reasoning", "id": f"rs_{about.call_id}", "summary": [], "encrypted_content": write_state(state)}
        )
    return items + [write_call_item(each, place, about) for place, each in enumerate(answer["proposals"])]


def write_message_item(about: Answered, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "type": "message",
        "id": f"msg_{about.call_id}",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def write_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def write_call_item(proposal: dict[str, Any], place: int, about: Answered) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{about.call_id}_{place}",
        "call_id": proposal["call_id"],
        "name": about.name_tool(proposal["name"]),
        "arguments": write_arguments(proposal),
        "status": "incomplete" if proposal["arguments"] is None else "completed",
    }


class ResponseStreamWriter:
    """One answer as events of OpenAI's Responses, numbered from 0."""

    def __init__(self, about: Answered) -> None:
        self._about = about
        self._number = 0
        self._text = ""

    def add(self, delta: ChatDelta) -> str:
        return self._begin() + (self._add_text(delta.text) if delta.text else "")

    def end(self, answer: dict[str, Any], warnings: tuple[str, ...] = ()) -> str:
        response = write_whole(answer, self._about, (*self._about.warnings, *warnings))
        said, items = self._begin(), response["output"]
        for place, item in enumerate(items):
            match item["type"]:
                case "message":
                    said += "" if self._text else self._add_text(item["content"][0]["text"])
                    said += self._end_message(item)
                case "function_call":
                    said += self._write_call(place, item)
                case _:
                    said += self._write_item("added", place, item) + self._write_item("done", place, item)
        return said + self._write(f"response.{response['status']}", response=response)

    def fail(self, problem: Problem) -> str:
        """Programs that do not read the first event read the second, and that is the last."""
        body = write_problem_object(problem)
        error = body["error"]
        said = self._begin() + self._write(
            "error", **{name: error[name] for name in ("code", "message", "param")}, **body
        )
        told = {"code": error["code"], "message": error["message"]}
        return said + self._write("response.failed", response=write_response(self._about, "failed", [], error=told))

    def _begin(self) -> str:
        if self._number:
            return ""
        response = write_response(self._about, "in_progress", [])
        return self._write("response.created", response=response) + self._write(
            "response.in_progress", response=response
        )

    def _add_text(self, text: str) -> str:
        said = ""
        if not self._text:
            said = self._write_item("added", 0, write_message_item(self._about, "in_progress", []))
            said += self._write_part("added", write_part(""))
        self._text += text
        return said + self._write("response.output_text.delta", **self._place_text(), delta=text, logprobs=[])

    def _end_message(self, item: dict[str, Any]) -> str:
        part = item["content"][0]
        said = self._write("response.output_text.done", **self._place_text(), text=part["text"], logprobs=[])
        return said + self._write_part("done", part) + self._write_item("done", 0, item)

    def _write_call(self, place: int, item: dict[str, Any]) -> str:
        at, arguments = {"item_id": item["id"], "output_index": place}, item["arguments"]
        said = self._write_item("added", place, item | {"arguments": "", "status": "in_progress"})
        said += self._write("response.function_call_arguments.delta", **at, delta=arguments)
        said += self._write("response.function_call_arguments.done", **at, name=item["name"], arguments=arguments)
        return said + self._write_item("done", place, item)

    def _place_text(self) -> dict[str, Any]:
        return {"item_id": f"msg_{self._about.call_id}", "output_index": 0, "content_index": 0}

    def _write_item(self, what: str, place: int, item: dict[str, Any]) -> str:
        return self._write(f"response.output_item.{what}", output_index=place, item=item)

    def _write_part(self, what: str, part: dict[str, Any]) -> str:
        return self._write(f"response.content_part.{what}", **self._place_text(), part=part)

    def _write(self, kind: str, **fields: Any) -> str:
        self._number += 1
        return write_event(kind, sequence_number=self._number - 1, **fields)


class OpenAIResponses:
    """The format of ``/v1/responses``."""

    name: ClassVar = "openai-responses"
    parameters: ClassVar[tuple[Parameter, ...]] = PARAMETERS

    def read(self, body: Any) -> ServedChat:
        return read_responses(body)

    def write(self, answer: dict[str, Any], about: Answered) -> dict[str, Any]:
        return write_whole(answer, about, about.warnings)

    def open_stream(self, about: Answered, options: Mapping[str, Any]) -> ResponseStreamWriter:
        return ResponseStreamWriter(about)

    def write_problem(self, problem: Problem) -> tuple[int, dict[str, Any]]:
        return find_status(problem), write_problem_object(problem)
