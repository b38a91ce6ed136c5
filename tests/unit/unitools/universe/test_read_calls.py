"""Read calls: are calls run that somebody else has read already, as the package llm gives them?"""

from __future__ import annotations

import anyio
import pytest

from unitools import Status, ToolCall, Universe
from unitools.calls import CallProblem

u = Universe()


@u.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


CUT = ToolCall("c2", "add", None, problem=CallProblem.TRUNCATED, why="The answer was cut.")


@pytest.mark.req("UNI-1", "LLM-1")
@pytest.mark.parametrize("kind", [tuple, list])
def test_each_call_that_was_read_has_one_result_in_order(kind: type[list[ToolCall]]) -> None:
    calls = kind([ToolCall("c1", "add", {"a": 2}), CUT, ToolCall("c3", "subtract", {})])

    results = anyio.run(u.dispatch, calls)

    assert [each.status for each in results] == [Status.OK, Status.TRUNCATED, Status.UNKNOWN_TOOL]
    assert results[0].value == 3
    assert [each["tool_call_id"] for each in results.to_messages()] == ["c1", "c2", "c3"]


def test_an_answer_that_proposes_nothing_has_no_results() -> None:
    assert anyio.run(u.dispatch, ()) == []
