"""Retries: asking a provider again that was busy or away, after the time that it names, and never once it has begun to answer.

An answer that was begun and is asked for again would be said twice, and paid for twice. Vectors and scores change nothing and come in
one piece, so they are asked for again like an answer that was not begun.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from random import random
from typing import TYPE_CHECKING, TypeVar

import anyio

from llm.interfaces import ChatModel
from llm.problems import ModelTimedOut, ProviderRateLimited, ProviderUnavailable, StreamTruncated

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from kernel.problems import Problem
    from llm.answers import ChatDelta
    from llm.requests import ChatRequest

A = TypeVar("A")
# What another try can help with. A request that was refused is refused again.
PASSING = (ModelTimedOut, ProviderRateLimited, ProviderUnavailable, StreamTruncated)


@dataclass(frozen=True, slots=True)
class RetryBounds:
    """``most``: tries beside the first. A provider that wants to be left alone for longer than ``longest_wait_s`` is."""

    most: int = 2
    first_wait_s: float = 0.5
    longest_wait_s: float = 30.0


class RetryPlan:
    """How long it is waited before each try. ``is_given_up``: it is not worth it any more."""

    def __init__(
        self,
        limits: RetryBounds | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
        chance: Callable[[], float] = random,
        is_given_up: Callable[[], bool] = bool,
    ) -> None:
        self._limits = limits or RetryBounds()
        self._sleep = sleep
        self._chance = chance
        self._is_given_up = is_given_up

    async def wait(self, problem: Problem, tries: int) -> bool:
        """Until the next try is due; False where there is none."""
        wait_s = self._find_wait(problem, tries)
        if wait_s is None:
            return False
        await self._sleep(wait_s)
        return True

    async def ask(self, ask: Callable[[], Awaitable[A]]) -> A:
        """What comes in one piece."""
        tries = 0
        while True:
            try:
                return await ask()
            except PASSING as problem:
                if not await self.wait(problem, tries):
                    raise
            tries += 1

    def _find_wait(self, problem: Problem, tries: int) -> float | None:
        """The provider's own time, or twice as long each time, by chance up to half of it less: many that failed together do not
        come back together."""
        if tries >= self._limits.most or self._is_given_up():
            return None
        if problem.retry_after is None:
            longest: float = self._limits.first_wait_s * 2**tries
            return longest * (1 - self._chance() / 2)
        return problem.retry_after if problem.retry_after <= self._limits.longest_wait_s else None


class RetriedChat(ChatModel):
    """A model that is asked again where its provider did not begin to answer."""

    def __init__(self, model: ChatModel, plan: RetryPlan | None = None) -> None:
        self.features = model.features
        self._model, self._plan = model, plan or RetryPlan()

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        tries = 0
        while True:
            began = False
            try:
                async with aclosing(self._model.open_stream(request)) as deltas:
                    async for delta in deltas:
                        began = True
                        yield delta
                return
            except PASSING as problem:
                if began or not await self._plan.wait(problem, tries):
                    raise
            tries += 1
