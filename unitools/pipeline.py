"""Pipeline: how a call gets through its middlewares, so that the tool runs exactly once.

Layers are passed from the outermost inwards: global, scoped, local. A layer that fails and is not critical is left out: if it had
called ``next_h`` already, what that gave is the outcome, so nothing runs twice. A decision (:mod:`unitools.outcomes`) is never a
failure, an error of the tool keeps its identity, and a cancellation passes through untouched.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import anyio

from unitools.middlewares import Middleware, MiddlewareCall
from unitools.outcomes import DECISIONS, CallInterrupted, MiddlewareFailed, ToolTimeout
from unitools.registration_errors import MiddlewareClash
from unitools.source_locations import locate_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

logger = logging.getLogger("unitools")


@dataclass(frozen=True, slots=True)
class Layer:
    """A middleware where it stands. ``stated``: somebody said by ``use`` whether it is critical."""

    middleware: Middleware
    critical: bool = True
    stated: bool = False


@dataclass(slots=True)
class CallProgress:
    """What has become of a call so far. ``refused``: the arguments were not valid; then the tool did not run for them."""

    executed: bool = False
    at_work: bool = False  # in a thread, which nobody can stop
    over: bool = False  # it is answered: what a layer left behind does not start the tool any more
    refused: Exception | None = None
    skipped: list[str] = field(default_factory=list)


def build_chain(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    """Each uid once, where it stands first. Raises MiddlewareClash for two things under one uid, or two wills about one."""
    found: dict[str, Layer] = {}
    for layer in layers:
        uid = layer.middleware.uid
        first = found.setdefault(uid, layer)
        if first.middleware != layer.middleware:
            raise MiddlewareClash(f"Two middlewares have the uid {uid}. Give them their own: middleware(uid=…).")
        if first.stated and layer.stated and first.critical != layer.critical:
            raise MiddlewareClash(f"The middleware {uid} is used as critical and as not critical for one tool.")
    return tuple(found.values())


async def pass_through(
    layers: tuple[Layer, ...],
    call: MiddlewareCall,
    terminal: Callable[[MiddlewareCall], Awaitable[Any]],
    run: CallProgress,
) -> Any:
    """What the outermost layer gives, or the terminal where there is none. Raises what the tool or a layer raised."""
    if not layers:
        return await terminal(call)
    return await _Onion(layers, terminal, run).enter(0, call)


class _Onion:
    """One call's way through its layers."""

    def __init__(
        self, layers: tuple[Layer, ...], terminal: Callable[[MiddlewareCall], Awaitable[Any]], run: CallProgress
    ) -> None:
        self.layers, self.terminal, self.run = layers, terminal, run

    async def enter(self, index: int, call: MiddlewareCall) -> Any:
        if index == len(self.layers):
            return await self.terminal(call)
        layer, inner = self.layers[index], NextHandler(self, index + 1, call)
        try:
            value = await inner.under(layer.middleware)
        except Exception as error:
            await inner.settled()
            decision = _decision(error, inner.error)
            if decision is error:
                raise
            if decision is not None:
                raise decision from error
            return await self._failed(layer, inner, error)
        else:
            await inner.settled()
            return value
        finally:
            inner.close()

    async def _failed(self, layer: Layer, inner: NextHandler, error: Exception) -> Any:
        uid = layer.middleware.uid
        logger.error("Middleware %s failed: %s.", uid, locate_error(error))
        if isinstance(inner.error, CallInterrupted) and isinstance(error, TimeoutError):
            raise ToolTimeout from error  # it gave the inner layers a time, and that is over
        if inner.error is not None:
            self.run.skipped.append(uid)
            raise inner.error
        if layer.critical:
            raise MiddlewareFailed(uid, executed=self.run.executed) from error
        self.run.skipped.append(uid)
        return await inner.outcome()


def _decision(error: BaseException, inner: Exception | None) -> BaseException | None:
    """What an error says of the call, also from inside a group of errors; None: it is a failure of the layer that raised it."""
    if error is inner or isinstance(error, DECISIONS):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for each in error.exceptions if (found := _decision(each, inner))), None)
    return None


class _State(Enum):
    NEW, RUNNING, DONE = auto(), auto(), auto()


class NextHandler:
    """The layers inside one. Called again, it gives the outcome of the first time."""

    def __init__(self, onion: _Onion, index: int, call: MiddlewareCall) -> None:
        self.error: Exception | None = None
        self._onion, self._index, self._call = onion, index, call
        self._middleware = onion.layers[index - 1].middleware
        self._state = _State.NEW
        self._over = False
        self._value: Any = None
        self._asked: MiddlewareCall = call
        self._finished: anyio.Event | None = None
        self._scope: anyio.CancelScope | None = None

    async def under(self, middleware: Middleware) -> Any:
        """Run the layer, in its own time if it has one."""
        if middleware.timeout is None:
            return await middleware(self._call.apart(), self)
        with anyio.move_on_after(middleware.timeout) as scope:
            self._scope = scope
            return await middleware(self._call.apart(), self)
        raise TimeoutError

    async def __call__(self, call: MiddlewareCall) -> Any:
        if not isinstance(call, MiddlewareCall):
            raise TypeError("next_h takes the call: next_h(call), or next_h(call.replace(…)).")
        await self.settled()
        if self._over and self._state is _State.NEW:
            raise CallInterrupted
        if self._state is _State.DONE and not self._may_run_again(call):
            return self._given()
        return await self._run(call)

    async def _run(self, call: MiddlewareCall) -> Any:
        self._state, self._asked, self.error = _State.RUNNING, call, None
        left = self._pause()
        try:
            self._value = await self._onion.enter(self._index, call)
        except Exception as error:
            self.error = error
            raise
        except BaseException:
            self.error = CallInterrupted()
            raise
        else:
            return self._value
        finally:
            self._state = _State.DONE
            if self._finished is not None:
                self._finished.set()
                self._finished = None
            self._resume(left)

    def _may_run_again(self, call: MiddlewareCall) -> bool:
        run = self._onion.run
        if self._over:
            return False
        if self._middleware.reentrant and (not run.executed or call.tool.spec.annotations.idempotent):
            return not run.at_work
        corrected = self.error is not None and self.error is run.refused and call.arguments != self._asked.arguments
        return corrected and not run.executed

    def _given(self) -> Any:
        if self.error is not None:
            raise self.error
        return self._value

    async def settled(self) -> None:
        """Wait for what a layer left running."""
        while self._state is _State.RUNNING:  # of several that wait, the first may have begun again
            self._finished = self._finished or anyio.Event()
            await self._finished.wait()

    def close(self) -> None:
        """The layer is over: what it left behind does not start the inner ones any more."""
        self._over = True

    async def outcome(self) -> Any:
        """As if the layer were not there."""
        return await self._run(self._call) if self._state is _State.NEW else self._given()

    def _pause(self) -> float:
        """Seconds that the layer has left of its own time."""
        if self._scope is None:
            return math.inf
        left, self._scope.deadline = self._scope.deadline - anyio.current_time(), math.inf
        return left

    def _resume(self, left: float) -> None:
        if self._scope is not None:
            self._scope.deadline = anyio.current_time() + left
