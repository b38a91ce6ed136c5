"""Provisions: what a Universe has for its tools, and how that is closed.

Closed is what has ``aclose()`` or ``close()``, in the turn opposite to that in which it was provided; one that fails does not keep
the others open. A :class:`~unitools.injection.Factory` closes what it yields by itself, after each call.
"""

from __future__ import annotations

import inspect
from contextlib import AsyncExitStack, ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from unitools.injection import Factory

if TYPE_CHECKING:
    from collections.abc import Mapping


class UniverseClosed(RuntimeError):
    """The Universe is closed, and so is what its tools need."""


class NeedsAsync(RuntimeError):
    """Something has to be awaited to be closed."""


class Provisions:
    """The values by their keys."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._closing: dict[str, Any] = {}
        self._closed = False

    @property
    def values(self) -> Mapping[str, Any]:
        return MappingProxyType(self._values)

    def add(self, key: str, value: Any, *, closes: bool) -> None:
        self.check_open()
        self._values[key] = value
        self._closing.pop(key, None)
        if closes and not isinstance(value, Factory):
            self._closing[key] = value

    def check_open(self) -> None:
        """Raises UniverseClosed."""
        if self._closed:
            raise UniverseClosed("This Universe is closed, and with it what its tools need. Make another one.")

    def close(self) -> None:
        """Raises NeedsAsync before anything is closed."""
        for key, value in self._closing.items():
            if _is_awaited(value):
                raise NeedsAsync(
                    f"What is provided as {key!r} has to be awaited: async with Universe(…), or await u.aclose()."
                )
        self._closed = True
        with ExitStack() as stack:
            for value in self._take():
                if callable(close := getattr(value, "close", None)):
                    stack.callback(close)

    async def aclose(self) -> None:
        self._closed = True
        async with AsyncExitStack() as stack:
            for value in self._take():
                stack.push_async_callback(_close, value)

    def _take(self) -> list[Any]:
        """Each object once."""
        values = list({id(value): value for value in self._closing.values()}.values())
        self._closing = {}
        return values


def _is_awaited(value: Any) -> bool:
    close = getattr(value, "close", None)
    return inspect.iscoroutinefunction(close) or (close is None and callable(getattr(value, "aclose", None)))


async def _close(value: Any) -> None:
    close = getattr(value, "aclose", None) or getattr(value, "close", None)
    if callable(close):
        done = close()
        if inspect.isawaitable(done):
            await done
