"""History: what a model is told of a conversation before the next message.

The words that the person wrote and those that were answered, as they are sealed with the runs; not what tools were asked in
between. A message that got no answer is left out, and so is what was erased.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evidence.problems import ValuesErased
from invocations.agent_runs.answers import find_last_answer, group_calls_by_step
from invocations.agent_runs.services import open_question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.agent_runs.models import AgentRun
    from invocations.playground.models import PlaygroundMessage, PlaygroundSide


def find_side(message: PlaygroundMessage, place: int) -> PlaygroundSide | None:
    """What stands on this side of the conversation; of a message that went to one model, that one."""
    sides = message.list_sides()
    return next((side for side in sides if side.place == place), sides[0] if len(sides) == 1 else None)


def build_history(messages: Sequence[PlaygroundMessage], place: int) -> list[dict[str, Any]]:
    """The conversation as one side knows it."""
    found: list[dict[str, Any]] = []
    for message in messages:
        side = find_side(message, place)
        if side is None or side.run is None:
            continue
        try:
            found += _read_exchange(side.run)
        except ValuesErased:
            continue
    return found


def _read_exchange(run: AgentRun) -> list[dict[str, Any]]:
    _, question = open_question(run)
    answer = find_last_answer(list(run.steps.order_by("position")), group_calls_by_step(run))
    text = (answer or {}).get("text")
    if not run.is_final or not text:
        return []
    said = {"role": "assistant", "segments": [{"type": "text", "text": text}]}
    return [question.arguments["messages"][-1], said]
