"""Model chains: the models that may answer a call, asked one after the other until one begins to.

What a model has said before it failed is never joined to what another one says: until the first token nothing is passed on, and
after it nobody else is asked. Another model is asked where the provider fails, not where a rule or the request does.
"""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from invocations.model_calls.kept_providers import shelf
from invocations.step_log import FAILED, PASSED
from kernel.problems import Problem
from llm.problems import (
    ModelFileUnusable,
    ModelTimedOut,
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderQuotaExhausted,
    ProviderRateLimited,
    ProviderUnavailable,
    StreamTruncated,
)
from llm.requests import ChatRequest, EmbedRequest, RerankRequest

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from invocations.model_calls.begin_gates import BeginGate
    from invocations.model_calls.model_attempts import ModelAttempt
    from invocations.step_log import StepLog
    from llm.answers import ChatDelta, EmbedAnswer, RerankAnswer

R = TypeVar("R", ChatRequest, EmbedRequest, RerankRequest)
A = TypeVar("A")
# What another provider can help with.
FALLING = (
    ModelFileUnusable,
    ModelTimedOut,
    ProviderAnswerUnreadable,
    ProviderKeyRefused,
    ProviderQuotaExhausted,
    ProviderRateLimited,
    ProviderUnavailable,
    StreamTruncated,
)
MOST_HELD = 256  # pieces without a token


class ModelChain:
    """Of one call. ``attempts``: the asked model and then its fallbacks. ``now_ms``: the clock of the call's steps."""

    def __init__(self, attempts: Sequence[ModelAttempt], *, now_ms: Callable[[], float]) -> None:
        self._attempts, self._at = attempts, 0
        self._now_ms = now_ms
        self._has_answered = False

    @property
    def asked(self) -> Sequence[ModelAttempt]:
        """Those whose turn came, in their order."""
        return self._attempts[: self._at + 1]

    @property
    def current(self) -> ModelAttempt:
        """The one that has answered, or was asked last."""
        return self._attempts[self._at]

    @property
    def requests(self) -> int:
        """How many were sent to all of them."""
        return sum(each.requests for each in self._attempts)

    def stay_here(self) -> None:
        """The event loop runs in a thread that waits for this call alone."""
        for each in self._attempts:
            each.here = True

    def hold_back(self, gate: BeginGate) -> None:
        """None is asked before this lets it."""
        for each in self._attempts:
            each.gate = gate

    def put_back(self) -> None:
        """Nothing was asked, and nothing will be."""
        for each in self._attempts:
            shelf.put_back(each.kept)

    async def close(self) -> None:
        """Nothing is asked any more."""
        for each in self._attempts:
            await shelf.give_back(each.kept)

    def add_steps(self, steps: StepLog, *, failed: bool) -> None:
        """One for each model that was asked. ``failed``: what came of the last one."""
        for each in self.asked:
            reason = each.problem.reason if each.problem is not None else ""
            status = FAILED if reason or (failed and each is self.current) else PASSED
            note = f"{each.tool} {reason}".strip() if self._at else ""
            steps.add("model.ask", "tool", each.begin_ms, each.end_ms, status=status, note=note)

    def describe_failures(self) -> list[str]:
        """Which models did not answer, for the caller of one that did."""
        return [
            f"{each.tool} did not answer ({each.problem.reason}); {self.current.tool} did."
            + (" What it may have used is counted by estimate." if any(sent.may_cost for sent in each.sent) else "")
            for each in self.asked
            if each.problem is not None
        ]

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """The answer of the first model that begins one, piece by piece."""
        while True:
            held: list[ChatDelta] = []
            attempt, began = self._begin(), False
            try:
                await attempt.check_worth()
                async with aclosing(attempt.build_chat().stream(self._fit(request))) as deltas:
                    async for delta in deltas:
                        if (
                            not began
                            and not delta.has_content
                            and delta.finish_reason is None
                            and len(held) < MOST_HELD
                        ):
                            held.append(delta)
                            continue
                        for each in () if began else held:
                            yield each
                        began = True
                        yield delta
            except Problem as problem:
                self._fail(problem, began=began)
            else:
                self._has_answered = True
                return
            finally:
                attempt.end_ms = self._now_ms()

    async def embed(self, request: EmbedRequest) -> EmbedAnswer:
        return await self._ask(lambda attempt: attempt.build_embedder().embed(self._fit(request)))

    async def rerank(self, request: RerankRequest) -> RerankAnswer:
        return await self._ask(lambda attempt: attempt.build_ranker().rerank(self._fit(request)))

    async def _ask(self, ask: Callable[[ModelAttempt], Awaitable[A]]) -> A:
        while True:
            attempt = self._begin()
            try:
                await attempt.check_worth()
                return await ask(attempt)
            except Problem as problem:
                self._fail(problem, began=False)
            finally:
                attempt.end_ms = self._now_ms()

    def _begin(self) -> ModelAttempt:
        attempt = self.current
        attempt.begin_ms, attempt.problem = attempt.begin_ms or self._now_ms(), None
        return attempt

    def _fail(self, problem: Problem, *, began: bool) -> None:
        """Go on to the next model, or raise. Asked a second time, a model that has answered stays the one."""
        self.current.problem = problem
        is_last = self._at + 1 == len(self._attempts)
        if began or is_last or self._has_answered or not isinstance(problem, FALLING):
            raise self._describe_all(problem)
        self._at += 1

    def _describe_all(self, problem: Problem) -> Problem:
        """The problem of the last one, which says what became of the others, and when the first of them may be asked again."""
        if self._at:
            waits = [each.problem.retry_after for each in self.asked if each.problem and each.problem.retry_after]
            problem.retry_after = min(waits, default=None)
            problem.details |= {"attempts": [each.describe() for each in self.asked]}
        return problem

    def _fit(self, request: R) -> R:
        """The request as the current model is asked it: as it was decided about, so with nothing that its provider may not be sent,
        and behind that what was added since.
        """
        if not self._at:
            return request
        asked: Any = self._attempts[0].preflight.model_request
        own: Any = self.current.preflight.model_request
        changes: dict[str, Any] = {
            "idempotency_key": request.idempotency_key and f"{request.idempotency_key}.{self._at}"
        }
        if isinstance(request, ChatRequest):
            changes["messages"] = (*own.messages, *request.messages[len(asked.messages) :])
        return cast("R", replace(own, **changes))
