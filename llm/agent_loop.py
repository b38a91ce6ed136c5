"""Agent loop: a model asked again and again, with what the tools of a program have answered, until it proposes nothing more.

The loop of a hub's runs, for programs without one: nothing is governed, kept or witnessed. A failure of the model is raised, one of a
tool is told the model.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from llm.answers import FinishReason
from llm.messages import Message, Text, ToolMessage
from llm.requests import ChatRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from llm.answers import ChatAnswer
    from llm.interfaces import ChatModel
    from llm.usage import Usage
    from unitools.calls import ToolCall, ToolResult
    from unitools.expressions import Expression
    from unitools.universe import Universe

MODEL = "main"  # a model that is at hand needs no name
NOTHING = "(The tool has answered with an empty text.)"


class AgentStop(StrEnum):
    """Why a loop went no further."""

    FINISHED = "finished"  # the model has answered and proposed nothing more
    LENGTH = "length"  # its answer was cut
    SAFETY = "safety"
    STEPS = "steps"
    SECONDS = "seconds"
    EQUAL_CALLS = "equal_calls"


STOPS = {FinishReason.LENGTH: AgentStop.LENGTH, FinishReason.SAFETY: AgentStop.SAFETY}


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """``steps``: how often the model is asked. ``seconds``: for all of it. ``equal_calls``: how often one tool is called with the same
    arguments.
    """

    steps: int = 10
    seconds: float | None = None
    equal_calls: int = 3


@dataclass(slots=True)
class AgentAnswer:
    """What a loop came to. ``messages``: the whole conversation, to go on with; its last proposals are answered, or left out."""

    stop: AgentStop
    text: str
    messages: list[Message]
    steps: int
    usage: Usage | None  # None where the provider said nothing


@dataclass(slots=True)
class _Loop:
    limits: AgentLimits
    messages: list[Message]
    usage: Usage | None = None
    steps: int = 0
    text: str = ""
    made: Counter[tuple[str, str]] = field(default_factory=Counter)

    def end(self, stop: AgentStop) -> AgentAnswer:
        return AgentAnswer(stop, self.text, self.messages, self.steps, self.usage)

    def note_answer(self, answer: ChatAnswer) -> None:
        self.steps, self.text = self.steps + 1, answer.text
        if answer.usage is not None:
            self.usage = answer.usage if self.usage is None else self.usage + answer.usage

    def count_equal(self, proposals: Sequence[ToolCall]) -> bool:
        """Whether one of them was made as often as it may be."""
        self.made.update((each.name, json.dumps(each.arguments, sort_keys=True)) for each in proposals)
        return max(self.made.values()) > self.limits.equal_calls

    def note_results(self, answer: ChatAnswer, results: Iterable[ToolResult]) -> None:
        self.messages.append(answer.build_message())
        for proposed, result in zip(answer.proposals, results, strict=True):
            texts = (Text(result.to_content() or NOTHING),)
            self.messages.append(ToolMessage(call_id=proposed.id, segments=texts, is_error=result.is_error))


async def run_agent(
    universe: Universe,
    model: ChatModel,
    messages: Iterable[Message],
    *,
    tools: Expression | str | None = None,
    context: Mapping[str, Any] | None = None,
    limits: AgentLimits | None = None,
    **parameters: Any,
) -> AgentAnswer:
    """The model's answer, with the tools of the program. ``tools``: an expression for those that it is shown; all, unless said.
    ``context``: what tools have injected. ``parameters``: of each request, as ``max_tokens``.

    Raises:
        Problem: the model has failed, or does not take the request.
    """
    loop = _Loop(limits or AgentLimits(), list(messages))
    specs = tuple((universe.tools if tools is None else universe[tools]).specs)
    try:
        async with asyncio.timeout(loop.limits.seconds) as within:
            while True:
                request = ChatRequest(**{"model": MODEL} | parameters, messages=tuple(loop.messages), tools=specs)
                answer = await model.generate(request)
                loop.note_answer(answer)
                if not answer.proposals:
                    loop.messages += [answer.build_message()] if answer.text else []
                    return loop.end(STOPS.get(answer.finish_reason, AgentStop.FINISHED))
                if loop.steps >= loop.limits.steps:
                    return loop.end(AgentStop.STEPS)
                if loop.count_equal(answer.proposals):
                    return loop.end(AgentStop.EQUAL_CALLS)
                loop.note_results(answer, await universe.dispatch(answer.proposals, context, tools))
    except TimeoutError:
        if not within.expired():
            raise
        return loop.end(AgentStop.SECONDS)
