"""Injection: where a tool gets what no model may give it.

A parameter ``db: Annotated[Db, Injected("db")]`` is filled from the context of the call. Models never see it, and an argument of its
name is refused like any other that the tool does not have. The context may hold the value itself or a :class:`Factory`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from unitools import runtime
from unitools.outcomes import DECISIONS, MissingDependency
from unitools.source_locations import locate_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger("unitools")


@dataclass(frozen=True, slots=True)
class Injected:
    """In an annotation: the parameter's value is what the context holds under ``key``; empty: under the parameter's name.

    A parameter with a default keeps it where the context holds nothing.
    """

    key: str = ""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: object) -> Any:
        """Only pydantic asks for this, and it never sees an injected parameter."""
        raise TypeError("Injected stands at a parameter of the tool. Inside a model a model would give the value")


@dataclass(frozen=True, slots=True)
class Factory:
    """In a context: makes the value when a tool needs it. ``make`` takes the call's context.

    What it returns (awaited, if need be) is made once for a dispatch and shared by its calls. What it yields, as a generator with one
    ``yield``, is made for each call and closed after it. It runs on the event loop, so slow work is awaited.
    """

    make: Callable[[Context], Any]


class Context(Mapping[str, Any]):
    """What the caller gave to a call, to be read only. Values are not printed.

    A tool that has a parameter ``ctx: Context`` is given that of its call, which no model sees: ``ctx["db"]`` is what stands there
    under the key, and ``ctx.progress`` and ``ctx.log`` tell whoever waits for the call, here and in a hub.
    """

    __slots__ = ("_held",)

    def __init__(self, held: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "_held", dict(held or {}))

    def log(self, message: str) -> None:
        """A line for the log of the call: :func:`unitools.runtime.log`. No personal data, no secrets."""
        runtime.log(message)

    def progress(self, fraction: float, message: str = "") -> None:
        """How far the call is, from 0 to 1: :func:`unitools.runtime.progress`. No personal data, no secrets."""
        runtime.progress(fraction, message)

    def __getitem__(self, key: str) -> Any:
        return self._held[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def __or__(self, other: Mapping[str, Any]) -> Context:
        """Another context, with these values as well."""
        return Context({**self._held, **other})

    def __reduce__(self) -> Any:
        return Context, (self._held,)

    def __repr__(self) -> str:
        return f"<Context of {', '.join(self._held) or 'nothing'}>"

    # What people write who expect a dict. Each is refused by a sentence with what to write instead.

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _CHANGES:
            raise AttributeError(f"There is no {name}(). {_NO_CHANGE.format(key='key')}")
        told = f'context["{name}"]' if name in self._held else 'context["key"]'
        raise AttributeError(f"A context has no attribute {name}. What it holds is read by its key: {told}.")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(_NO_CHANGE.format(key=name))

    def __delattr__(self, name: str) -> None:
        raise AttributeError(_NO_CHANGE.format(key=name))

    def __setitem__(self, key: str, value: object) -> None:
        raise TypeError(_NO_CHANGE.format(key=key))

    def __delitem__(self, key: str) -> None:
        raise TypeError(_NO_CHANGE.format(key=key))


_CHANGES = frozenset({"update", "pop", "popitem", "setdefault", "clear"})
_NO_CHANGE = (
    'A context does not change. In a middleware write next_h(call.replace(context=call.context | {{"{key}": …}})); '
    'for every call of the Universe, provide("{key}", …).'
)


class FactoryValues:
    """What the factories of one dispatch returned. A call whose context a middleware replaced shares nothing with the others."""

    def __init__(self) -> None:
        self._values: dict[
            tuple[Factory, int], tuple[Context, Any]
        ] = {}  # the context is held, so its id is not used again
        self._locks: dict[Factory, anyio.Lock] = {}

    async def value(self, factory: Factory, context: Context, closing: AsyncExitStack) -> Any:
        if inspect.isgeneratorfunction(factory.make):
            return closing.enter_context(contextmanager(factory.make)(context))
        if inspect.isasyncgenfunction(factory.make):
            return await closing.enter_async_context(asynccontextmanager(factory.make)(context))
        key = factory, id(context)
        async with self._locks.setdefault(factory, anyio.Lock()):
            if key not in self._values:
                value = factory.make(context)
                self._values[key] = context, await value if inspect.isawaitable(value) else value
        return self._values[key][1]


@dataclass(frozen=True, slots=True)
class InjectedParameter:
    """One injected parameter."""

    parameter: str
    key: str
    has_default: bool
    is_context: bool = False  # it is the context itself


async def resolve_injected_values(
    wanted: tuple[InjectedParameter, ...], context: Context, made: FactoryValues, closing: AsyncExitStack
) -> dict[str, Any]:
    """Parameter → value. Raises MissingDependency; values are handed on as they are, never copied."""
    found = {}
    for each in wanted:
        if each.is_context:
            found[each.parameter] = context
            continue
        if each.key not in context:
            if each.has_default:
                continue
            logger.error("Nothing is given under the key %r.", each.key)
            raise MissingDependency(each.key)
        value = context[each.key]
        if isinstance(value, Factory):
            try:
                value = await made.value(value, context, closing)
            except DECISIONS:
                raise
            except Exception as error:
                logger.error("Making what the key %r stands for failed: %s.", each.key, locate_error(error))  # noqa: TRY400 - the text may hold it
                raise MissingDependency(each.key) from error
        found[each.parameter] = value
    return found
