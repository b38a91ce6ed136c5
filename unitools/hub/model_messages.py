"""Model messages: a conversation with a model, as programs write it and as a hub reads it.

A text is what a user says. A dict is a message of a hub (``role``, ``segments``, ``proposals``), or one of OpenAI's Chat Completions
(``content``, ``tool_calls``, ``tool_call_id``), as :meth:`HubClient.dispatch` answers them. A :class:`ChatAnswer` stands for what the
model wrote. Other dataclasses are taken by their fields, so messages of the package ``llm`` go as they are.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from unitools.calls import ToolCall
from unitools.hub.model_results import ChatAnswer, proposal_to_json

Messages = str | Mapping[str, Any] | ChatAnswer | Sequence[Any]
TOOL_CALL = "A call in `tool_calls` has an id, and a function with a name and an object as its arguments."


def build_messages(messages: Messages) -> list[dict[str, Any]]:
    """The conversation for a hub. Raises TypeError and ValueError for what is no message."""
    if isinstance(messages, str | Mapping) or not isinstance(messages, Sequence):
        return [build_message(messages)]
    return [build_message(each) for each in messages]


def build_message(message: Any) -> dict[str, Any]:
    if isinstance(message, str):
        return {"role": "user", "segments": _split_content(message)}
    if isinstance(message, ChatAnswer):
        return message.build_message()
    if isinstance(message, Mapping):
        return _convert_mapping(message)
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        said: dict[str, Any] = _to_json(message)
        return said
    raise TypeError(
        f"A message is a text, a dict with a role, or an answer of a model, and no {type(message).__name__}."
    )


def _convert_mapping(message: Mapping[str, Any]) -> dict[str, Any]:
    """What says nothing (None) is left out; what is not known here is for the hub to judge."""
    said = {name: _to_json(value) for name, value in message.items() if value is not None}
    if "content" in said:
        said["segments"] = _split_content(said.pop("content"))
    if "tool_call_id" in said:
        said["call_id"] = said.pop("tool_call_id")
    if "tool_calls" in said:
        said["proposals"] = [_convert_call(each) for each in said.pop("tool_calls")]
    return said


def _split_content(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content)


def _convert_call(call: Any) -> dict[str, Any]:
    try:
        function = call["function"]
        return {
            "call_id": call["id"],
            "name": function["name"],
            "arguments": json.loads(function["arguments"] or "{}"),
        }
    except (KeyError, TypeError, ValueError):
        raise ValueError(TOOL_CALL) from None


def _to_json(value: Any) -> Any:
    if isinstance(value, ToolCall):
        return proposal_to_json(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        return {name: _to_json(each) for name, each in fields.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_to_json(each) for each in value]
    return value
