"""Model attempts: how one model of a call is asked, request by request, and what is remembered of it.

Before each request stand the circuit of the model and the rates of its provider; what comes of it counts for the circuit, which all
processes share. Neither a thread nor a connection is held while an answer comes.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import sleep
from asgiref.sync import sync_to_async

from invocations.model_calls.provider_rates import LONGEST_WAIT_S, build_rate_problem, list_limits, take_from_limit
from invocations.model_calls.sent_requests import SentRequest
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for
from kernel.http.parsers import make_storable
from kernel.problems import Problem
from llm.interfaces import ChatModel, EmbedModel, RerankModel
from llm.problems import ModelTimedOut, ProviderAnswerUnreadable, ProviderUnavailable, StreamTruncated
from llm.retries import RetriedChat, RetryBounds, RetryPlan
from registry.model_providers import circuits
from registry.models import ModelCircuitState

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from invocations.decide.preflight import Preflight
    from invocations.model_calls.begin_gates import BeginGate
    from invocations.model_calls.kept_providers import KeptProvider
    from invocations.model_calls.model_demand import ModelDemand
    from invocations.model_calls.tenant_providers import Model
    from llm.answers import ChatDelta, EmbedAnswer, RerankAnswer
    from llm.requests import ChatRequest, EmbedRequest, RerankRequest
    from registry.model_providers.settings import ProviderSettings
    from registry.models import ModelCircuit, ModelProvider
    from unitools.manifest import ModelPart

T = TypeVar("T")
A = TypeVar("A", "EmbedAnswer", "RerankAnswer")
# Failures that are the provider's, after some of which in a row it is not asked for a while. Whoever says no works.
FAILURES = (ModelTimedOut, ProviderAnswerUnreadable, ProviderUnavailable, StreamTruncated)


def is_failure(problem: Problem) -> bool:
    """Whether it is the provider's. What is wrong with one caller's request keeps nobody else from asking."""
    if isinstance(problem, ProviderAnswerUnreadable) and problem.is_of_request:
        return False
    return isinstance(problem, FAILURES)


@dataclass(slots=True)
class ModelAttempt:
    """One model of a call. ``provider`` and ``settings`` as they were when the call was accepted, and so is ``model``."""

    preflight: Preflight
    provider: ModelProvider
    settings: ProviderSettings
    model: Model
    kept: KeptProvider
    circuit: ModelCircuit | None  # None: it had not failed
    sent: list[SentRequest] = field(default_factory=list)
    problem: Problem | None = None  # that came of it
    begin_ms: float = 0.0
    end_ms: float = 0.0
    here: bool = False  # the database is asked in the thread that the event loop runs in, which nobody else uses
    gate: BeginGate | None = None  # None: the call has its Begin
    _tries: bool = False  # it is the one that tries a circuit that is half open
    _has_failed: bool = False  # and not answered since
    _given_up: bool = False

    @property
    def tool(self) -> str:
        return self.preflight.decision_context.tool

    @property
    def part(self) -> ModelPart:
        assert self.preflight.version is not None
        part = self.preflight.version.manifest.model
        assert part is not None
        return part

    @property
    def demand(self) -> ModelDemand:
        assert self.preflight.model_demand is not None
        return self.preflight.model_demand

    @property
    def requests(self) -> int:
        """How many it was sent."""
        return len(self.sent)

    async def check_worth(self) -> None:
        """Raise :class:`ProviderUnavailable` where it is not worth asking now. This may be the call that tries a half open circuit."""
        if self.circuit is not None:
            times = self.settings.timeouts
            longest_s = times.connect_s + times.first_event_s
            await self._wait_for_begin()
            self._tries = await self.in_thread(circuits.begin_try, self.circuit, longest_s=longest_s)

    def build_chat(self) -> ChatModel:
        """The model, asked again as its provider's settings say; the call that tries asks once."""
        assert isinstance(self.model, ChatModel)
        return RetriedChat(WatchedChat(self.model, self), self._plan_retries())

    def build_embedder(self) -> EmbedModel:
        """As :meth:`build_chat`."""
        assert isinstance(self.model, EmbedModel)
        return WatchedEmbed(self.model, self)

    def build_ranker(self) -> RerankModel:
        """As :meth:`build_chat`."""
        assert isinstance(self.model, RerankModel)
        return WatchedRerank(self.model, self)

    def _plan_retries(self) -> RetryPlan:
        bounds = RetryBounds(most=0 if self._tries else self.settings.retries)
        return RetryPlan(bounds, is_given_up=lambda: self._given_up)

    async def ask(self, ask: Callable[[], Awaitable[A]]) -> A:
        """For what comes in one piece: each request is watched, and it is asked again as its provider's settings say."""

        async def ask_once() -> A:
            async with self.watch_request() as sent:
                answer = await ask()
                sent.end(answer)
                return answer

        return await self._plan_retries().ask(ask_once)

    def describe(self) -> dict[str, Any]:
        """For whoever asked."""
        reason = self.problem.reason if self.problem is not None else None
        return {"model": self.tool, "requests": self.requests, "problem": reason}

    @asynccontextmanager
    async def watch_request(self) -> AsyncIterator[SentRequest]:
        """One request to the provider, from its rates to what came of it."""
        sent = None
        try:
            await self._wait_for_begin()
            await self._wait_for_rates()
            sent = SentRequest()
            self.sent.append(sent)
            yield sent
        except Problem as problem:
            if sent is None:
                await self._give_up_try()
                raise
            sent.problem = problem
            if is_failure(problem):
                await self._count_failure(problem)
            else:
                await self._count_answer()
            raise
        except BaseException:
            await self._give_up_try()
            raise
        await self._count_answer()

    async def _wait_for_begin(self) -> None:
        if self.gate is not None:
            await self.gate.wait()

    async def _wait_for_rates(self) -> None:
        rates = self.settings.rates
        tokens, left_s = self.demand.input_tokens + self.demand.output_tokens, LONGEST_WAIT_S
        # One after the other: what was taken of the first is not taken again while the second is waited for.
        for limit in list_limits(self.provider, rates, tokens):
            while wait_s := await self.in_thread(take_from_limit, limit):
                if wait_s > left_s:
                    self._given_up = True
                    raise build_rate_problem(self.provider, wait_s)
                left_s -= wait_s
                await sleep(wait_s)

    async def _count_failure(self, problem: Problem) -> None:
        provider, model, tried = self.provider, self.part.name, self._tries
        count = circuits.count_failure
        state = await self.in_thread(count, provider, model, why=problem.reason, tried=tried)
        self._has_failed = True
        self._tries, self._given_up = False, state is ModelCircuitState.OPEN

    async def _count_answer(self) -> None:
        self._tries = False
        if self.circuit is not None or self._has_failed:
            self._has_failed = False
            await self.in_thread(circuits.count_answer, self.provider, self.part.name)

    async def _give_up_try(self) -> None:
        if self._tries:
            self._tries = False
            await self.in_thread(circuits.give_up_try, self.provider, self.part.name)

    async def in_thread(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Ask the database, off the event loop."""

        def work() -> T:
            try:
                with acting_for(self.provider.tenant_id):
                    return function(*arguments, **named)
            finally:
                release_connection()

        found: T = await sync_to_async(work, thread_sensitive=self.here)()
        return found


def make_delta_storable(delta: ChatDelta) -> ChatDelta:
    """A piece whose text and names every database takes. Arguments stay as they came: what is wrong with them, their reader says."""
    call, text = delta.tool_call, make_storable(delta.text)
    if call is None and text == delta.text:
        return delta
    if call is not None:
        call = replace(call, call_id=make_storable(call.call_id), name=make_storable(call.name))
    return replace(delta, text=text, tool_call=call)


class WatchedChat(ChatModel):
    """A provider's model, each request of which is watched."""

    def __init__(self, model: ChatModel, attempt: ModelAttempt) -> None:
        self.features = model.features
        self._model, self._attempt = model, attempt

    async def open_stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        watched, opened = self._attempt.watch_request(), self._model.open_stream(request)
        async with watched as sent, aclosing(opened) as deltas:
            async for delta in deltas:
                sent.add(delta)
                yield make_delta_storable(delta)
            if not sent.whole:
                raise StreamTruncated


class WatchedEmbed(EmbedModel):
    """As :class:`WatchedChat`, and asked again."""

    def __init__(self, model: EmbedModel, attempt: ModelAttempt) -> None:
        self.features = model.features
        self._model, self._attempt = model, attempt

    async def compute_vectors(self, request: EmbedRequest) -> EmbedAnswer:
        return await self._attempt.ask(lambda: self._model.compute_vectors(request))


class WatchedRerank(RerankModel):
    """As :class:`WatchedEmbed`."""

    def __init__(self, model: RerankModel, attempt: ModelAttempt) -> None:
        self._model, self._attempt = model, attempt

    async def compute_scores(self, request: RerankRequest) -> RerankAnswer:
        return await self._attempt.ask(lambda: self._model.compute_scores(request))
