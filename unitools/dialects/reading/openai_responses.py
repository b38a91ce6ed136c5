"""Which calls does a response of OpenAI Responses propose, and how are they answered?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolCall, ToolResult
    from unitools.dialects.base import Reading


def detect(response: object) -> int:
    """How surely the response is of this dialect, 0 to 100, by its shape."""
    raise NotImplementedError


def parse(response: object, reading: Reading) -> list[ToolCall]:
    raise NotImplementedError


def reply(results: Sequence[ToolResult]) -> Any:
    raise NotImplementedError
