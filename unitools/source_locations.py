"""Source locations: where in the code a function is, or where an error came from.

Errors are told by type and place only: their texts may hold what was injected.
"""

from __future__ import annotations

import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def locate_error(error: BaseException) -> str:
    """``KeyError at bank.py:12``."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{at}"


def unwrap_function(thing: Any) -> Any:
    """The function inside partials, methods, static and class methods, and decorators that name what they wrap."""
    while True:
        if isinstance(thing, functools.partial):
            thing = thing.func
        elif isinstance(thing, (staticmethod, classmethod)) or inspect.ismethod(thing):
            thing = thing.__func__
        elif hasattr(thing, "__wrapped__"):
            thing = thing.__wrapped__
        else:
            return thing


def locate_function(function: Callable[..., Any]) -> str:
    """``bank.py:12``; empty for what is written in no file."""
    code = getattr(unwrap_function(function), "__code__", None)
    return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else ""


def describe_origin(function: Callable[..., Any]) -> str:
    """``BankService.transfer (bank.py:12)``."""
    plain, place = unwrap_function(function), locate_function(function)
    name = getattr(plain, "__qualname__", type(plain).__name__)
    return f"{name} ({place})" if place else name
