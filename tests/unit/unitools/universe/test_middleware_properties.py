"""Middleware properties: does the tool run exactly once whatever its middlewares do, and is the outcome the one that they leave?"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sdk_calls import run
from unitools import Deny, Status, ToolResult, Universe, middleware

BEHAVIOURS = (
    "passes",
    "fails before",
    "fails after",
    "calls twice",
    "swallows an error",
    "masks an error",
    "leaves it running and fails",
    "leaves it running and returns it",
    "denies before",
    "denies after",
    "answers itself",
    "asks again after an error",
    "gives it time",
)


@dataclass(frozen=True)
class Plan:
    behaviour: str
    critical: bool
    waits: bool


class OwnFault(Exception):
    pass


class ToolFault(Exception):
    pass


def layer_of(plan: Plan, index: int) -> Any:
    async def layer(call: Any, next_h: Any) -> Any:
        if plan.waits:
            await asyncio.sleep(0)
        match plan.behaviour:
            case "fails before":
                raise OwnFault
            case "fails after":
                await next_h(call)
                raise OwnFault
            case "calls twice":
                await next_h(call)
                return await next_h(call)
            case "swallows an error":
                try:
                    return await next_h(call)
                except Exception:  # noqa: BLE001 - as authors do
                    return "swallowed"
            case "masks an error":
                try:
                    return await next_h(call)
                except Exception as error:
                    raise OwnFault from error
            case "leaves it running and fails" | "leaves it running and returns it":
                left = asyncio.ensure_future(next_h(call))
                left.add_done_callback(lambda task: task.cancelled() or task.exception())
                await asyncio.sleep(0)
                if plan.behaviour.endswith("fails"):
                    raise OwnFault
                return await left
            case "denies before":
                raise Deny
            case "denies after":
                await next_h(call)
                raise Deny
            case "answers itself":
                return ToolResult.error("no")
            case "asks again after an error":
                try:
                    return await next_h(call)
                except Exception:  # noqa: BLE001 - as authors do
                    return await next_h(call)
            case "gives it time":
                with anyio.fail_after(60):
                    return await next_h(call)
        return await next_h(call)

    return middleware(uid=f"layer {index}", reentrant=plan.behaviour == "asks again after an error")(layer)


def expected(plans: list[Plan], fails: bool) -> tuple[int, Status, Any]:
    """How often the tool runs, and what the outermost layer leaves, by the rules."""
    stops = ("denies before", "answers itself")
    reached = not any(each.behaviour in stops or (each.behaviour == "fails before" and each.critical) for each in plans)
    raised, status, value = fails, Status.TOOL_ERROR if fails else Status.OK, None if fails else "done"
    for plan in reversed(plans):
        match plan.behaviour:
            case "fails before" if plan.critical:
                raised, status, value = True, Status.MIDDLEWARE_ERROR, None
            case "fails after" | "leaves it running and fails" if plan.critical and not raised:
                raised, status, value = True, Status.MIDDLEWARE_ERROR, None
            case "denies before":
                raised, status, value = True, Status.DENIED, None
            case "denies after" if not raised:
                raised, status, value = True, Status.DENIED, None
            case "swallows an error" if raised:
                raised, status, value = False, Status.OK, "swallowed"
            case "answers itself":
                raised, status, value = False, Status.TOOL_ERROR, None
    return int(reached), status, value


plans = st.lists(st.builds(Plan, st.sampled_from(BEHAVIOURS), st.booleans(), st.booleans()), max_size=8)


def universe_of(stack: list[Plan], fails: bool, runs: list[str]) -> Universe:
    u = Universe()

    @u.tool
    async def work() -> str:
        runs.append("once")
        await asyncio.sleep(0)
        if fails:
            raise ToolFault
        return "done"

    for index, plan in enumerate(stack):
        u.use(layer_of(plan, index), critical=plan.critical)
    return u


@pytest.mark.req("UNI-6")
@settings(deadline=None)
@given(plans, st.booleans())
def test_the_tool_runs_once_unless_a_layer_stopped_the_call_before_it(stack: list[Plan], fails: bool) -> None:
    runs: list[str] = []

    result = run(lambda: universe_of(stack, fails, runs).call("work"))

    assert (len(runs), result.status, result.value) == expected(stack, fails)
    assert result.executed is bool(runs)


@pytest.mark.req("UNI-6")
@settings(deadline=None)
@given(plans, st.booleans(), st.integers(0, 12))
def test_a_call_that_is_cancelled_runs_the_tool_at_most_once(stack: list[Plan], fails: bool, moments: int) -> None:
    runs: list[str] = []

    async def main() -> bool:
        call = asyncio.ensure_future(universe_of(stack, fails, runs).call("work"))
        for _ in range(moments):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        for _ in range(20):
            await asyncio.sleep(0)
        return call.cancelled()

    was_cancelled = run(main)

    assert len(runs) <= expected(stack, fails)[0]
    assert was_cancelled or len(runs) == expected(stack, fails)[0]
