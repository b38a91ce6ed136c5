"""Middlewares: what one is, and what it sees of a call.

``async def layer(call, next_h)``: it returns what ``await next_h(call)`` gave, or a :class:`~unitools.calls.ToolResult` instead.
A call is never changed; what inner layers are to see otherwise goes on as ``next_h(call.replace(arguments=…))``.
"""

from __future__ import annotations

import inspect
from dataclasses import FrozenInstanceError, dataclass
from typing import TYPE_CHECKING, Any

from unitools.injection import Context

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from unitools.metadata import ToolMetadata


class CallArguments(dict[str, Any]):
    """The arguments of a call, to be read only."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError(
            "The arguments of a call do not change. Write next_h(call.replace(arguments={**call.arguments, …}))."
        )

    __setitem__ = __delitem__ = update = pop = popitem = setdefault = clear = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> Any:
        """A copy is a plain dict, which may change."""
        return dict, (dict(self),)


@dataclass(frozen=True, slots=True, repr=False)
class MiddlewareCall:
    """A call on its way to the tool. ``arguments`` are the model's, not validated yet; ``context`` is what the caller gave."""

    id: str
    name: str
    arguments: Mapping[str, Any]
    context: Context
    tool: ToolMetadata

    def replace(
        self, *, arguments: Mapping[str, Any] | None = None, context: Mapping[str, Any] | None = None
    ) -> MiddlewareCall:
        """The same call with other arguments, or with another context: ``call.replace(context={**call.context, "user": user})``."""
        return MiddlewareCall(
            self.id,
            self.name,
            self.arguments if arguments is None else CallArguments(arguments),
            self.context if context is None else Context(context),
            self.tool,
        )

    def apart(self) -> MiddlewareCall:
        """With lists and objects of its own in the arguments: what a layer does to them goes no way but through ``next_h``."""
        nested = any(isinstance(each, (list, dict)) for each in self.arguments.values())
        return self.replace(arguments=_copy(dict(self.arguments))) if nested else self

    def __repr__(self) -> str:
        return f"<call {self.id} of {self.name}>"


def _refuse_change(_: MiddlewareCall, name: str, *_value: object) -> None:
    if name in ("arguments", "context"):
        raise FrozenInstanceError(f"A call does not change. Write next_h(call.replace({name}=…)).")
    raise FrozenInstanceError(
        "A call does not change; only its arguments and its context can be replaced, for the layers inside."
    )


MiddlewareCall.__setattr__ = _refuse_change  # type: ignore[method-assign, assignment]
MiddlewareCall.__delattr__ = _refuse_change  # type: ignore[method-assign, assignment]


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Middleware:
    """A layer. Of layers with one ``uid`` a call passes the outermost one only.

    ``reentrant``: a further ``next_h(call)`` runs the inner layers again, if the tool did not run or is idempotent; else it gives what
    the first one gave. ``timeout``: seconds of its own, in which the time of the layers inside it does not count.
    """

    func: Callable[..., Any]
    uid: str
    reentrant: bool = False
    timeout: float | None = None

    async def __call__(self, call: MiddlewareCall, next_h: Any) -> Any:
        found = self.func(call, next_h)
        while inspect.isawaitable(found):  # `return next_h(call)` is as good as `return await next_h(call)`
            found = await found
        return found


def as_middleware(layer: Any, *, uid: str = "", reentrant: bool = False, timeout: float | None = None) -> Middleware:
    """Its uid, unless given, is the full name of the function, or of the class of an object that is called. Raises TypeError."""
    if isinstance(layer, Middleware):
        return layer
    if not callable(layer) or inspect.isclass(layer):
        raise TypeError(
            f"{layer!r} is no middleware: that is an async function of (call, next_h), or an object called like one."
        )
    named = layer if hasattr(layer, "__qualname__") else type(layer)
    return Middleware(layer, uid or f"{named.__module__}.{named.__qualname__}", reentrant, timeout)


def middleware(
    *, uid: str = "", reentrant: bool = False, timeout: float | None = None
) -> Callable[[Callable[..., Any]], Middleware]:
    """A decorator, for what :class:`Middleware` says beside the function."""
    return lambda layer: as_middleware(layer, uid=uid, reentrant=reentrant, timeout=timeout)
