"""Dispatch: how each call that a model proposed gets exactly one answer.

Whatever comes of a call is made into a :class:`~unitools.calls.ToolResult` here, outside the layers: inside them errors are what they
were. What is not a decision is told to the log by type and place, and to the model not at all.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
import time
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from unitools import runtime
from unitools.calls import CallMessage, Status, ToolResult
from unitools.concurrency import limit_time
from unitools.injection import resolve_injected_values
from unitools.middlewares import CallArguments, MiddlewareCall
from unitools.outcomes import (
    DECISIONS,
    CallInterrupted,
    InvalidOutput,
    ToolTimeout,
    build_argument_refusal,
    build_error_result,
    list_result_findings,
)
from unitools.output_values import find_no_json
from unitools.pipeline import CallProgress, pass_through
from unitools.source_locations import locate_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from unitools.calls import ToolCall
    from unitools.concurrency import Slots
    from unitools.dialects import Driver
    from unitools.injection import Context, FactoryValues
    from unitools.metadata import ToolMetadata
    from unitools.pipeline import Layer

    OnMessage = Callable[[CallMessage], object]

logger = logging.getLogger("unitools")

CLOSE_NAMES, LONGEST_NAME = 3, 128
NOT_AS_DECLARED = (ValueError, TypeError, RecursionError)  # pydantic's errors are ValueErrors
INTERRUPTED = ToolResult.error("The call was cancelled.", status=Status.CANCELLED, code="TOOL.CANCELLED")


class Results(list[ToolResult]):
    """One result for each call, in the order of the calls. ``diagnostics``: why there may be fewer than the model meant."""

    def __init__(self, results: Iterable[ToolResult], driver: Driver, diagnostics: Iterable[str] = ()) -> None:
        super().__init__(results)
        self.driver, self.diagnostics = driver, tuple(diagnostics)

    def to_messages(self) -> Any:
        """The answer in the dialect of the response."""
        return self.driver.reply(self)


@dataclass(frozen=True, slots=True)
class CallJob:
    """A call that is let through, with all that it takes to run it."""

    call: ToolCall
    tool: ToolMetadata
    chain: tuple[Layer, ...]
    context: Context
    made: FactoryValues
    slots: Slots
    timeout: float | None = None
    stops_tools: bool = True  # by their own timeouts; else whoever runs the program stops them
    on_message: OnMessage | None = None


async def run_all(jobs: Sequence[CallJob | ToolResult], *, parallel: int) -> list[ToolResult]:
    """What is a result already stays one. One call that fails does not stop the others; a cancellation stops all."""
    results = [job if isinstance(job, ToolResult) else replace(INTERRUPTED, call=job.call) for job in jobs]
    places = anyio.CapacityLimiter(parallel)

    async def answer(index: int, job: CallJob) -> None:
        async with places:
            results[index] = await run_job(job)

    async with anyio.create_task_group() as group:
        for index, job in enumerate(jobs):
            if isinstance(job, CallJob):
                group.start_soon(answer, index, job)
    return results


async def run_job(job: CallJob) -> ToolResult:
    """One call through its layers. Never raises but for a cancellation."""
    run, started = CallProgress(), time.perf_counter()
    result = build_error_result(ToolTimeout())
    with limit_time(job.timeout):
        result = await _result(job, run)
    run.over = True
    if result.is_error:
        result = _sayable(result)
    if run.at_work:
        result = replace(result, details=(*result.details, {"still_running": True}))
    return replace(
        result,
        call=job.call,
        duration_ms=(time.perf_counter() - started) * 1000,
        executed=run.executed,
        skipped_middlewares=tuple(run.skipped),
    )


async def _result(job: CallJob, run: CallProgress) -> ToolResult:
    tool = job.tool
    call = MiddlewareCall(job.call.id, tool.name, CallArguments(job.call.arguments or {}), job.context, tool)

    async def terminal(call: MiddlewareCall) -> Any:
        return await _run_tool(job, call, run)

    try:
        value = await pass_through(job.chain, call, terminal, run)
        return value if isinstance(value, ToolResult) and value.is_error else _shown(value, tool)
    except DECISIONS as error:
        return build_error_result(error)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return replace(
            INTERRUPTED, cause=error
        )  # nobody cancelled this task: the tool raised it, or waited for a task that was cancelled
    except Exception as error:  # noqa: BLE001 - a tool may raise anything
        if error is run.refused:
            return build_argument_refusal(error, tool.schema_names)
        logger.error("Tool %s failed: %s.", tool.name, locate_error(error))  # noqa: TRY400 - the text may hold what was injected
        return build_error_result(error)


async def _run_tool(job: CallJob, call: MiddlewareCall, run: CallProgress) -> Any:
    """The arguments are valid before anything is injected, and all is there before the tool begins."""
    try:
        values = job.tool.validated(call.arguments)
    except NOT_AS_DECLARED as error:
        run.refused = error
        raise
    failure: Exception = CallInterrupted()
    async with AsyncExitStack() as closing:
        try:
            values |= await resolve_injected_values(job.tool.injected, call.context, job.made, closing)
            with nullcontext() if _in_a_box() else _running(job, call):
                return await job.slots.run(job.tool, values, run, stops=job.stops_tools)
        except Exception as error:
            failure = error
            raise
    raise failure  # a factory that yields has caught it, and a failure is none the less one


def _running(job: CallJob, call: MiddlewareCall) -> AbstractContextManager[object]:
    """What the tool says of itself meanwhile goes to whoever wanted to be told; else it is printed."""
    told = job.on_message
    if told is None:
        return runtime.running(runtime.Call(call_id=call.id, tool_id=job.tool.id))

    def tell(line: bytes) -> None:
        try:
            told(CallMessage.from_line(line, call_id=call.id, tool=job.tool.name))
        except Exception as error:  # noqa: BLE001 - whoever looks on must not stop the tool in the middle of its work
            where = locate_error(error)
            logger.error("on_message failed in tool %s: %s.", job.tool.name, where)  # noqa: TRY400 - its text may hold anything

    return runtime.running(runtime.Call(call_id=call.id, tool_id=job.tool.id), progress=tell)


def _in_a_box() -> bool:
    """Whether a call of a hub is being answered, so that unitools.runtime speaks of that one."""
    try:
        runtime.current_call()
    except RuntimeError:
        return False
    return True


def _shown(value: Any, tool: ToolMetadata) -> ToolResult:
    """As JSON, and as the tool declares it."""
    said = value if isinstance(value, ToolResult) else ToolResult.ok(value)
    try:
        checked = tool.output.validate_python(said.value)
        plain = tool.output.dump_python(checked, mode="json", by_alias=True, warnings=False)
        json.dumps(plain, allow_nan=False, ensure_ascii=False).encode()
    except NOT_AS_DECLARED as error:
        names = tool.output_names
        invalid = InvalidOutput(list_result_findings(error, names, said.value) or find_no_json(said.value, names))
        logger.error("Tool %s: %s", tool.name, invalid.message)  # noqa: TRY400 - the text may hold what was injected
        raise invalid from error
    return replace(said, value=plain)


def _sayable(error: ToolResult) -> ToolResult:
    """Without what no JSON can hold, by which the answers to all the other calls would be lost too."""
    try:
        error.to_content().encode()
    except NOT_AS_DECLARED:
        return replace(error, message=str(error.message).encode(errors="replace").decode(), details=())
    return error


def answer_unknown_tool(call: ToolCall, visible: Iterable[str]) -> ToolResult:
    """``visible``: the names that the caller may know of."""
    close = difflib.get_close_matches(call.name[:LONGEST_NAME], list(visible), n=CLOSE_NAMES)
    told = f" Similar ones: {', '.join(close)}." if close else ""
    return ToolResult.error(f"There is no tool of this name.{told}", status=Status.UNKNOWN_TOOL, code="TOOL.UNKNOWN")


def answer_unusable_call(call: ToolCall) -> ToolResult:
    """The answer to a call whose arguments could not be read."""
    status = call.problem.outcome if call.problem else Status.INVALID_ARGUMENTS
    code = "TOOL.ARGS_TRUNCATED" if status is Status.TRUNCATED else "TOOL.ARGS_INVALID"
    return ToolResult.error(call.why or "The arguments are not valid.", status=status, code=code)
