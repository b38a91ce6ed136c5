"""Single execution: does a tool run once and in its time, also where a layer asks several times at once or leaves something
behind?
"""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from tests.support.sdk_calls import asked, dispatched, run
from unitools import Status, ToolResult, Universe, middleware


def counting(**said: Any) -> tuple[Universe, list[int]]:
    u, runs = Universe(), list[int]()

    async def work(amount: int) -> int:
        runs.append(amount)
        await anyio.sleep(0)
        return amount

    u.tool(**said)(work)
    return u, runs


@middleware(uid="slow")
async def slow(call: Any, next_h: Any) -> Any:
    """What it does takes a while, so that others wait for it together."""
    await anyio.sleep(0)
    return await next_h(call)


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize("reentrant", [True, False])
def test_of_several_corrections_at_once_one_is_run(reentrant: bool) -> None:
    u, runs = counting()

    @middleware(uid="eager", reentrant=reentrant)
    async def eager(call: Any, next_h: Any) -> Any:
        tries = [next_h(call), *(next_h(call.replace(arguments={"amount": each})) for each in (1, 2, 3))]
        return (await asyncio.gather(*tries, return_exceptions=True))[-1]

    u.use(eager)
    u.use(slow)

    assert dispatched(u, ("work", {"amount": "many"}))[0].value == runs[0]
    assert len(runs) == 1


@pytest.mark.req("UNI-6")
def test_what_a_layer_left_behind_starts_no_tool_after_the_layer() -> None:
    u, runs = counting()
    left = list[asyncio.Task[Any]]()

    @middleware(uid="hasty", reentrant=True)
    async def hasty(call: Any, next_h: Any) -> Any:
        async def later() -> None:
            await over.wait()
            await next_h(call.replace(arguments={"amount": 2}))

        left.append(asyncio.create_task(later()))
        try:
            return await next_h(call)
        except ValueError:
            return ToolResult.error("It is not to be.")

    u.use(hasty)

    async def dispatch() -> Any:
        result = (await u.dispatch(asked(("work", {"amount": "many"}))))[0]
        over.set()
        await asyncio.gather(*left, return_exceptions=True)
        return result

    over = asyncio.Event()
    assert not run(dispatch).executed
    assert runs == []


@pytest.mark.req("UNI-6")
def test_a_call_that_was_answered_in_the_queue_is_never_run() -> None:
    """Its layer shields it from being cancelled."""
    u, runs = counting(serial_group="one")
    left = list[asyncio.Task[Any]]()

    @u.tool(serial_group="one")
    async def hold() -> None:
        await free.wait()

    async def shielding(call: Any, next_h: Any) -> Any:
        left.append(asyncio.create_task(next_h(call)))
        return await asyncio.shield(left[-1])

    u.use(shielding)

    async def dispatch() -> Any:
        results = await u.dispatch(asked(("hold", {}), ("work", {"amount": 1})), timeout=0.05)
        free.set()
        await asyncio.gather(*left, return_exceptions=True)
        return results

    free = asyncio.Event()
    assert [(each.status, each.executed) for each in run(dispatch)] == [(Status.TIMEOUT, True), (Status.TIMEOUT, False)]
    assert runs == []


@pytest.mark.req("UNI-6")
@pytest.mark.parametrize("in_thread", [True, False])
def test_a_tool_that_would_end_the_program_fails_alone(in_thread: bool) -> None:
    u, runs = counting()

    @u.tool(in_thread=in_thread)
    def leave() -> None:
        raise SystemExit(2)

    results = dispatched(u, ("leave", {}), ("work", {"amount": 1}))

    assert [each.code for each in results] == ["TOOL.FAILED", ""]
    assert results[0].executed
    assert runs == [1]


@pytest.mark.req("UNI-6")
def test_what_a_layer_that_failed_did_to_the_arguments_is_not_what_runs() -> None:
    u, got = Universe(), list[list[int]]()

    @u.tool
    async def work(amounts: list[int]) -> None:
        got.append(amounts)

    async def clumsy(call: Any, next_h: Any) -> Any:
        call.arguments["amounts"].append(99)
        raise ValueError

    u.use(clumsy, critical=False)
    result = dispatched(u, ("work", {"amounts": [1]}))[0]

    assert got == [[1]]
    assert result.call is not None
    assert result.call.arguments == {"amounts": [1]}


@pytest.mark.req("UNI-6")
def test_a_tool_that_calls_another_of_its_serial_group_does_not_wait_for_itself() -> None:
    u, runs = counting(serial_group="one")

    @u.tool(serial_group="one")
    async def outer(name: str) -> str:
        return (await u.call(name, {"amount": 1})).code

    async def apart(amount: int) -> None:
        runs.append(amount)

    u.tool(serial_group="another")(apart)
    results = dispatched(u, ("outer", {"name": "work"}), ("outer", {"name": "apart"}), ("work", {"amount": 2}))

    assert [each.value for each in results] == ["TOOL.FAILED", "", 2]
    assert runs == [1, 2]
