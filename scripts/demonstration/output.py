"""Output of the demonstration: numbered steps, and what the hub answered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from scripts.demonstration.hub_clients import StoryBroken

if TYPE_CHECKING:
    from scripts.demonstration.hub_clients import HubAnswer, Json


def print_line(text: str = "") -> None:
    print(text, flush=True)


class Steps:
    """Numbered headings."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, title: str) -> None:
        self._number += 1
        print_line(f"\n{self._number:2}. {title}")


def print_value(label: str, value: Any) -> None:
    print_line(f"      {label:<14} {value}")


def format_fields(data: Json, *names: str) -> str:
    """The parts of an answer that tell the story."""
    return ", ".join(f"{name} {data[name]}" for name in names if name in data)


def expect_status(answer: HubAnswer, status: int, *, reason: str = "") -> HubAnswer:
    if answer.status != status or answer.reason != reason:
        problem = json.dumps(answer.body.get("error") or answer.body, ensure_ascii=False)[:600]
        raise StoryBroken(f"Expected {status} {reason or 'without a problem'}, got {answer.status}: {problem}")
    print_value("answered", f"{answer.status} in {answer.ms:.0f} ms" + (f", {answer.reason}" if reason else ""))
    return answer


def print_refusal(answer: HubAnswer) -> None:
    error = answer.body["error"]
    print_value("code", error["code"])
    print_value("message", error["message"])
    if error.get("remedy"):
        print_value("remedy", error["remedy"])
