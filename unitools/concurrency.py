"""Concurrency: the tools that may run at the same time.

A function that is not async runs in a thread, and there are so many threads. Tools of one serial group run one at a time. A thread
cannot be stopped: whoever stops waiting for it leaves its place taken until it ends, and one that has not begun never begins.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from threading import Lock
from typing import TYPE_CHECKING, Any

import anyio
from anyio.lowlevel import RunVar, current_token
from anyio.to_thread import run_sync

from unitools.outcomes import CallInterrupted, ToolTimeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from unitools.metadata import ToolMetadata
    from unitools.pipeline import CallProgress

_THREADS = ""
_held_around: ContextVar[tuple[list[anyio.CapacityLimiter], ...]] = ContextVar("unitools_held_around", default=())


def limit_time(seconds: float | None) -> AbstractContextManager[object]:
    """What is in the block is cancelled when the time is over; None: never. That costs nothing."""
    return nullcontext() if seconds is None else anyio.move_on_after(seconds)


class WouldEndProgram(RuntimeError):
    """The tool raised SystemExit, which is the cause."""


@contextmanager
def _going_on() -> Iterator[None]:
    """A tool that would end the program, as parsers of command lines do, has failed like any other."""
    try:
        yield
    except SystemExit as error:
        raise WouldEndProgram("The tool would end the program.") from error


class Slots:
    """The places of one Universe, in each event loop."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._limiters: RunVar[dict[str, anyio.CapacityLimiter]] = RunVar("unitools_slots")

    def _limiter(self, name: str) -> anyio.CapacityLimiter:
        try:
            found = self._limiters.get()
        except LookupError:
            found = {}
            self._limiters.set(found)
        if name not in found:
            found[name] = anyio.CapacityLimiter(1 if name else self.threads)
        return found[name]

    async def run(self, tool: ToolMetadata, values: dict[str, Any], run: CallProgress, *, stops: bool = True) -> Any:
        """What the tool's function returns, awaited. Sets ``executed`` when it begins, and ``at_work`` while a thread is busy.

        Raises ToolTimeout when the tool's time is over, in which waiting for its turn does not count, and Interrupted when the call
        was answered meanwhile. ``stops``: at the tool's own timeout.
        """
        threaded = tool.in_thread and not tool.is_async
        names = [name for name, needed in ((tool.serial_group, tool.serial_group), (_THREADS, threaded)) if needed]
        async with self._taken(names, run) as free:
            if run.over:
                raise CallInterrupted
            with limit_time(tool.timeout if stops else None), _going_on():
                if threaded:
                    value = await _in_thread(tool, values, run, free)
                else:
                    run.executed = True
                    value = tool.fn(**values)
                return await value if hasattr(value, "__await__") else value
            raise ToolTimeout

    @asynccontextmanager
    async def _taken(self, names: list[str], run: CallProgress) -> AsyncIterator[Callable[[], None]]:
        limiters, holder = [self._limiter(name) for name in names], object()
        held: list[anyio.CapacityLimiter] = []
        around = _held_around.get()
        if names and names[0] != _THREADS and any(limiters[0] in each for each in around):
            raise RuntimeError("A tool of a serial group called another of it, which would wait for it for ever.")
        inside = _held_around.set((*around, held))

        def free() -> None:
            while held:
                held.pop().release_on_behalf_of(holder)

        try:
            for limiter in limiters:
                await limiter.acquire_on_behalf_of(holder)
                held.append(limiter)
            yield free
        finally:
            _held_around.reset(inside)
            if not run.at_work:
                free()


async def _in_thread(tool: ToolMetadata, values: dict[str, Any], run: CallProgress, free: Callable[[], None]) -> Any:
    token: Any = current_token()
    loop = getattr(token, "native_token", token)
    soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon
    deciding = Lock()
    abandoned = False

    def work() -> Any:
        with deciding:
            if abandoned:
                return None
            run.executed = run.at_work = True
        try:
            with _going_on():
                return tool.fn(**values)
        finally:
            with suppress(RuntimeError):  # the loop is over, and its places with it
                soon(ended)

    def ended() -> None:
        run.at_work = False
        if abandoned:
            free()

    try:
        value = await run_sync(work, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
    except Exception:
        run.at_work = False
        raise
    except BaseException:
        with deciding:
            abandoned = True
        raise
    run.at_work = False
    return value
