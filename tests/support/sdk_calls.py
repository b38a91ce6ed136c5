"""SDK calls: how do tests write a model's answer, and wait for what came of it?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

T = TypeVar("T")

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from unitools import Results, ToolResult, Universe


def asked(*calls: tuple[str, Mapping[str, Any] | str]) -> dict[str, Any]:
    """An answer of OpenAI Chat that proposes these calls: name and arguments, or their text as it is. Ids are id_0, id_1, …"""
    proposed = [
        {
            "id": f"id_{index}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for index, (name, given) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": proposed}
    return {"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return anyio.run(work)


def dispatched(universe: Universe, *calls: tuple[str, Mapping[str, Any] | str], **options: Any) -> Results:
    return anyio.run(lambda: universe.dispatch(asked(*calls), **options))


def called(universe: Universe, name: str, context: Mapping[str, Any] | None = None, /, **arguments: Any) -> ToolResult:
    return anyio.run(lambda: universe.call(name, arguments, context))
