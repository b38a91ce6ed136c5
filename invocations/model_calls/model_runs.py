"""Model runs: how a model is asked, on the event loop of the process that took the call.

Before a run the call has its Begin, its lease and what it may take; after it one transaction writes the End, what was taken and the
answer. In between neither a thread nor a connection is held. Whoever asks for the end of a run closes the provider's stream, and what
was used until then is estimated. A run that a crash cut off is ended by the sweeper, and never made again.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from contextlib import aclosing
from contextvars import Context
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync, sync_to_async

from invocations.end.end_record import build_caller_principal
from invocations.end.endings import Ending
from invocations.end.obligation_enforcement import enforce_obligations
from invocations.metrics.model_metrics import count_model_run
from invocations.model_calls.begin_gates import BeginGate
from invocations.model_calls.degraded_requests import describe_degradation
from invocations.model_calls.held_files import offer_files, record_sent_files
from invocations.model_calls.kept_providers import shelf
from invocations.model_calls.kept_vectors import bound_vectors
from invocations.model_calls.model_answers import answer_to_json, describe_fallback, describe_warnings
from invocations.model_calls.model_chains import ModelChain
from invocations.model_calls.model_facts import to_plain_name
from invocations.model_calls.model_settlement import build_model_report, describe_other_model
from invocations.model_calls.piece_buffer import PieceBuffer
from invocations.model_calls.run_keeper import get_run_keeper
from invocations.model_calls.run_spans import begin_model_span, end_model_span
from invocations.model_calls.sent_data import describe_masked
from invocations.model_calls.stream_places import places
from invocations.model_calls.tenant_providers import build_attempts
from invocations.model_meters.services import note_usage
from invocations.models import State
from invocations.problems import CallCancelled
from invocations.run.execution import write_ending
from invocations.step_log import StepLog
from kernel.database.connections import release_connection
from kernel.database.tenancy import acting_for
from kernel.fault_injection import inject_fault
from kernel.observability.log_context import bind_log_context
from kernel.observability.telemetry import read_trace_id
from kernel.problems import Internal, Problem
from llm.answers import ChatAnswer, EmbedAnswer
from llm.interfaces import find_exact_tools
from llm.problems import ModelTimedOut
from llm.requests import ChatRequest, EmbedRequest, TextFormat
from llm.streams import AnswerCollector
from llm.structured_output import obtain_output

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.calls import AnsweredCall, BegunCall
    from invocations.decide.preflight import Preflight
    from invocations.model_calls.live_words import LiveWords
    from invocations.model_calls.model_answers import ModelAnswer
    from invocations.model_calls.model_attempts import ModelAttempt
    from invocations.model_calls.model_facts import ModelReport
    from invocations.model_calls.model_requests import ModelRequest
    from invocations.models import Invocation
    from unitools.manifest import ModelPart

log = logging.getLogger("toolhub.models")
LEFT = (
    "The caller left before the answer was whole; the provider's stream was closed, and what it had used was estimated."
)
UNPRICED_ANSWER = (
    "The provider answered with the model {model}, which has no price: of budgets of money counts what was reserved."
)
WORDS_LATE_S = 60.0  # behind the time of an answer: for writing it down
ASKED_FOR = "This call was cancelled while the model answered; what it had used was estimated."


@dataclass(frozen=True, slots=True)
class AskedRun:
    """What a run was made for. The models of ``chain`` are kept to the end, whatever is changed meanwhile."""

    invocation: Invocation
    preflight: Preflight
    request: ModelRequest
    chain: ModelChain
    steps: StepLog

    @property
    def part(self) -> ModelPart:
        assert self.preflight.version is not None
        part = self.preflight.version.manifest.model
        assert part is not None
        return part


class ModelRun:
    """One call of a model that runs here. ``live``: its pieces are passed on as they come. ``has_place``: of its agent's streams.
    ``words``: told what it says, where no request reads its pieces.
    """

    def __init__(self, asked: AskedRun, *, live: bool, has_place: bool = False, words: LiveWords | None = None) -> None:
        self._asked, self._live, self._has_place, self._words = asked, live, has_place, words
        self.id: UUID = asked.invocation.pk
        self.pieces = PieceBuffer()
        self._first_token_ms: int | None = None
        self.whole_data: dict[str, Any] | None = None  # after the end, where not all of the answer is stored
        self._stopped_by: Problem | None = None
        self._asking: asyncio.Task[ModelAnswer] | None = None
        self._whole: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate: BeginGate | None = None

    def start_early(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin as far as :class:`BeginGate` lets it, before the Begin of the call is committed."""
        self._gate = BeginGate()
        self._asked.chain.hold_back(self._gate)
        self._begin_on(loop)

    def start_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin, or go on, while the thread that prepared this run is still about its response."""
        if self._gate is None:
            self._begin_on(loop)
        else:
            loop.call_soon_threadsafe(self._gate.open)

    def _begin_on(self, loop: asyncio.AbstractEventLoop) -> None:
        """What the request of this thread acts as is not the run's."""
        self._loop = loop
        loop.call_soon_threadsafe(self.start, context=Context())

    def discard(self) -> None:
        """There is no such call, or it is ended without its provider. What was prepared is given back, and nothing is written."""
        if self._gate is not None:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._gate.close)
            return
        self._asked.chain.put_back()
        self._give_place_back()

    def start(self) -> asyncio.Task[None]:
        """Begin on the event loop that runs here; once. The task goes on to the End, whoever waits for it."""
        if self._whole is None:
            self._whole = asyncio.create_task(self._run())
            _whole_runs.add(self._whole)
            self._whole.add_done_callback(_whole_runs.discard)
        return self._whole

    async def _run(self) -> None:
        try:
            ending = await self.execute()
        finally:
            self.pieces.close()
            self._give_place_back()
        await sync_to_async(self.finish, thread_sensitive=False)(ending)

    def _give_place_back(self) -> None:
        if self._has_place:
            self._has_place = False
            places.give_back(self._asked.invocation.agent_id)

    async def execute(self) -> Ending:
        """Ask the model and judge what it says. Every failure is an ending, one of the hub's own as well."""
        try:
            return await self._execute()
        except Exception as error:  # noqa: BLE001
            return self._give_up(error)

    def _give_up(self, error: Exception, *, model: ModelReport | None = None) -> Ending:
        """The end of a call whose answer the hub itself cannot deal with. Without the error's text, which may quote the prompt."""
        where = "".join(traceback.format_tb(error.__traceback__))
        log.error("Unmapped %s while %s ran:\n%s", type(error).__name__, self._asked.invocation.wire_id, where)
        return Ending(state=State.FAILED, problem=Internal(), model=model, steps=self._asked.steps.steps)

    async def _execute(self) -> Ending:
        asked, steps = self._asked, self._asked.steps
        if self._stopped_by is not None:
            await asked.chain.close()
            return Ending(state=State.CANCELLED, problem=self._stopped_by, ran=False, steps=steps.steps)
        begin_ms = steps.now_ms()
        span = begin_model_span(asked.invocation, asked.part)
        self._asking = asyncio.create_task(self._ask())
        try:
            if self._gate is not None:
                await self._gate.wait()
            with get_run_keeper().keep(self):
                done, _ = await asyncio.wait({self._asking}, timeout=self.timeout_s)
                if not done:
                    self._stop(ModelTimedOut(f"The whole answer was not there within {self.timeout_s:g} seconds."))
                    await asyncio.wait({self._asking})
        finally:
            self._asking.cancel()
            await asked.chain.close()
            if self._words is not None:
                await self._words.stop()
        ending = self._judge(self._asking, steps)
        asked.chain.add_steps(steps, failed=ending.problem is not None)
        end_model_span(span, ending)
        count_model_run(ending, steps.now_ms() - begin_ms)
        return ending

    @property
    def timeout_s(self) -> float:
        """How long the whole answer may take."""
        assert self._asked.preflight.version is not None
        return self._asked.preflight.version.manifest.timeout_ms / 1000

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it, also where its End could not be written."""
        return self._whole is not None and self._whole.done()

    async def wait_async(self, seconds: float) -> None:
        """Until the End is written, or the time is over: its task is waited for, and no wake-up is needed."""
        await asyncio.wait({self.start()}, timeout=seconds)

    def complete(self, answered: AnsweredCall) -> AnsweredCall:
        """With all of the answer, where not all of it is stored."""
        return replace(answered, whole_data=self.whole_data)

    def cancel(self) -> None:
        """Its caller has asked for its end, or somebody else has closed the call."""
        self._stop(CallCancelled(ASKED_FOR))

    def leave(self) -> None:
        """Nobody reads the answer any more, says whatever thread closes the response. After the end this does nothing."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._leave)

    def _leave(self) -> None:
        if self._stopped_by is None and not self.is_over:
            self._stop(CallCancelled(LEFT))
            self.start()

    def _stop(self, problem: Problem) -> None:
        self._stopped_by = self._stopped_by or problem
        if self._asking is not None:
            self._asking.cancel()

    async def _ask(self) -> ModelAnswer:
        with offer_files(self._asked.preflight.held_files):
            return await self._ask_model()

    async def _ask_model(self) -> ModelAnswer:
        asked = self._asked
        if isinstance(asked.request, ChatRequest):
            return await obtain_output(asked.request, self._collect)
        if isinstance(asked.request, EmbedRequest):
            return await asked.chain.embed(asked.request)
        return await asked.chain.rerank(asked.request)

    async def _collect(self, request: ChatRequest) -> ChatAnswer:
        deltas, collector = self._asked.chain.stream(request), AnswerCollector(find_exact_tools(request))
        async with aclosing(deltas):
            async for delta in deltas:
                collector.add(delta)
                if delta.has_content and self._first_token_ms is None:
                    self._first_token_ms = delta.elapsed_ms
                if self._live:
                    await self.pieces.put(delta)
                if self._words is not None:
                    self._words.add(delta.text, keep_s=self.timeout_s + WORDS_LATE_S)
        return collector.build_answer()

    def _judge(self, asking: asyncio.Task[ModelAnswer], steps: StepLog) -> Ending:
        problem: Problem | None = None
        answer: ModelAnswer | None = None
        state = State.FAILED
        try:
            answer = asking.result()
        except asyncio.CancelledError:
            problem = self._stopped_by or CallCancelled(ASKED_FOR)
            state = State.CANCELLED if isinstance(problem, CallCancelled) else State.TIMED_OUT
        except Problem as found:
            problem, state = found, State.TIMED_OUT if isinstance(found, ModelTimedOut) else State.FAILED
        except Exception as error:  # noqa: BLE001  whatever an adapter raises, the call gets its End
            problem = self._give_up(error).problem
        report = build_model_report(self._asked, answer, first_token_ms=self._first_token_ms)
        if answer is None:
            # Nothing was sent where the request itself was refused, or nobody was worth asking.
            ran = self._asked.chain.requests > 0
            return Ending(state=state, problem=problem, ran=ran, model=report if ran else None, steps=steps.steps)
        return Ending(
            state=State.SUCCEEDED,
            output=answer_to_json(answer, report.usage_to_json()) | describe_fallback(self._asked.preflight, report),
            warnings=self._collect_warnings(answer, report),
            model=report,
            steps=steps.steps,
        )

    def _collect_warnings(self, answer: ModelAnswer, report: ModelReport) -> list[str]:
        found = describe_masked(self._asked.chain.current.preflight.sent_data)
        found += describe_warnings(answer.warnings) if isinstance(answer, ChatAnswer | EmbedAnswer) else []
        found += self._asked.chain.describe_failures()
        found += describe_other_model(report)
        if report.is_unpriced_answer:
            found.append(UNPRICED_ANSWER.format(model=to_plain_name(report.answered_by) or "that answered"))
        if self._asked.preflight.degradation is not None:
            found += describe_degradation(self._asked.preflight.degradation)
        if isinstance(answer, ChatAnswer) and answer.repairs:
            found.append(f"The JSON of the answer was repaired: {', '.join(answer.repairs)}.")
        return found

    def _enforce_obligations(self, ending: Ending) -> Ending:
        """Finding personal data in an answer takes a while: not on the event loop."""
        invocation, version = self._asked.invocation, self._asked.preflight.version
        if not invocation.obligations or version is None:
            return ending
        steps, validator = StepLog(invocation.created_at), version.output_validator
        enforced = enforce_obligations(
            ending, invocation.obligations, call_id=invocation.wire_id, validator=validator, steps=steps
        )
        return replace(enforced, steps=[*enforced.steps, *steps.steps])

    def _prepare_ending(self, ending: Ending) -> tuple[Ending, dict[str, Any] | None]:
        """As it is stored, and the whole data where that is more."""
        try:
            return bound_vectors(self._enforce_obligations(ending))
        except Exception as error:  # noqa: BLE001  the call gets its End, and what it took stays taken
            return self._give_up(error, model=ending.model), None

    def finish(self, ending: Ending) -> None:
        """Write the End, with what was taken. In a thread, or where there is no event loop."""
        invocation = self._asked.invocation
        inject_fault("model.answered")
        try:
            with acting_for(invocation.tenant_id), bind_log_context(**_log_fields(invocation)):
                stored, whole_data = self._prepare_ending(ending)
                if write_ending(invocation, stored):
                    self.whole_data = whole_data
                    note_usage(stored.model, tenant_id=invocation.tenant_id)
                else:
                    log.warning("%s was ended by somebody else; its answer is discarded", invocation.wire_id)
        finally:
            if self._words is not None:
                self._words.drop()
            release_connection()

    def run_here(self) -> None:
        """The whole run in this thread, where nobody can wait without one."""
        self._asked.chain.stay_here()
        self._give_place_back()
        self.finish(async_to_sync(self.execute)())


_whole_runs: set[asyncio.Task[None]] = set()  # a task that nobody holds may be collected


def _log_fields(invocation: Invocation) -> dict[str, str]:
    return {
        "call_id": invocation.wire_id,
        "tenant": str(invocation.tenant_id),
        "trace_id": read_trace_id(invocation.trace),
    }


def prepare_run(
    begun: BegunCall, *, wants_stream: bool, words: LiveWords | None = None, early: ModelRun | None = None
) -> ModelRun | None:
    """The run of a call that was accepted; None if its provider cannot be asked, and then the call has its End.

    ``words``: told what the model says, as far as a stream would be. ``early``: the run, where it was built already.
    """
    invocation, preflight, run = begun.invocation, begun.preflight, early
    assert preflight is not None
    inject_fault("model.accepted")
    try:
        run = run or build_run(invocation, preflight, wants_stream=wants_stream, words=words)
        record_sent_files(preflight.held_files.values(), by=build_caller_principal(invocation))
    except Exception as error:
        problem = error if isinstance(error, Problem) else Internal()
        if not isinstance(error, Problem):
            log.exception("The provider of %s cannot be asked", invocation.wire_id)
        if run is not None:
            run.discard()
        write_ending(invocation, Ending(state=State.FAILED, problem=problem, ran=False))
        return None
    return run


def build_run(
    invocation: Invocation, preflight: Preflight, *, wants_stream: bool, words: LiveWords | None = None
) -> ModelRun:
    """The run of a call that may be made, as :func:`prepare_run` has it. The database is not asked."""
    attempts: list[ModelAttempt] = []
    if wants_stream:
        places.take(invocation.agent_id)
    try:
        for each in build_attempts(invocation, preflight):
            attempts.append(each)  # noqa: PERF402  where a later one cannot be built, it is given back
    except BaseException:
        if wants_stream:
            places.give_back(invocation.agent_id)
        for each in attempts:
            shelf.put_back(each.kept)
        raise
    asked_for = preflight.candidates[0].model_request
    assert asked_for is not None
    request = replace(asked_for, idempotency_key=invocation.wire_id)
    is_text = isinstance(request, ChatRequest) and isinstance(request.response_format, TextFormat)
    # What is to be read as JSON, or changed by an obligation, is not known before it is whole.
    is_told_early = is_text and not invocation.obligations
    steps = StepLog(invocation.created_at)
    chain = ModelChain(attempts, now_ms=steps.now_ms)
    return ModelRun(
        AskedRun(invocation, preflight, request, chain, steps),
        live=wants_stream and is_told_early,
        has_place=wants_stream,
        words=words if is_told_early else None,
    )
