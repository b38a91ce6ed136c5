"""Scripted llama.cpp: it stands where a hub looks for the runtime of its local models, and needs no weights.

It proposes a call of the tool that it is told of, with what the question names, and when that has answered says its total.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

QUESTION = re.compile(r"What do (?P<quantity>\d+) pieces of (?P<sku>[A-Z0-9-]+) cost in (?P<currency>[A-Z]{3})")
TOTAL = re.compile(r'"total": ?"([0-9.]+)"')
USAGE = {"prompt_tokens": 40, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}}


class CommonParams:
    """Takes every parameter, and those of its parts."""

    def __getattr__(self, name: str) -> Any:
        part = CommonParams()
        setattr(self, name, part)
        return part


class Server:
    def __init__(self, parameters: CommonParams) -> None:
        self.parameters = parameters

    def handle_metrics(self) -> str:
        return ""

    def handle_chat_completions(self, body: str, take: Callable[[str], bool]) -> None:
        said = json.dumps(build_answer(json.loads(body)["messages"]))
        for delta, reason in (({"content": said}, None), ({}, "stop")):
            take(json.dumps({"choices": [{"delta": delta, "finish_reason": reason}]}))
        take(json.dumps({"choices": [], "usage": USAGE}))


def build_answer(messages: list[dict[str, str]]) -> dict[str, Any]:
    last = messages[-1]["content"]
    if total := TOTAL.search(last):
        return {"text": f"Together that is {total[1]}."}
    tool, asked = re.search(r"^- (\S+):", messages[0]["content"], re.MULTILINE), QUESTION.search(last)
    if tool is None or asked is None:
        return {"text": "I do not know."}
    arguments = {"sku": asked["sku"], "quantity": int(asked["quantity"]), "currency": asked["currency"]}
    return {"tool_calls": [{"name": tool[1], "arguments": arguments}]}
