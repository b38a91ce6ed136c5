"""Unitools: how an author writes a tool, and how a hub and a model see it. Nothing in here imports Django.

What is listed in ``__all__`` is loaded when it is asked for: a box that runs a tool needs :mod:`unitools.runtime` only, and has
neither pydantic nor anyio.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from unitools.calls import Annotations as Annotations
    from unitools.calls import CallMessage as CallMessage
    from unitools.calls import Status as Status
    from unitools.calls import ToolCall as ToolCall
    from unitools.calls import ToolResult as ToolResult
    from unitools.calls import ToolSpec as ToolSpec
    from unitools.dialects import DialectError as DialectError
    from unitools.dialects import Rendered as Rendered
    from unitools.dialects.streams import StreamCollector as StreamCollector
    from unitools.dispatch import Results as Results
    from unitools.expressions import Expression as Expression
    from unitools.expressions import Tag as Tag
    from unitools.expressions.name_atoms import Name as Name
    from unitools.expressions.name_atoms import Prefix as Prefix
    from unitools.injection import Context as Context
    from unitools.injection import Factory as Factory
    from unitools.injection import Injected as Injected
    from unitools.metadata import ToolMetadata as ToolMetadata
    from unitools.middlewares import Middleware as Middleware
    from unitools.middlewares import MiddlewareCall as MiddlewareCall
    from unitools.middlewares import middleware as middleware
    from unitools.outcomes import Deny as Deny
    from unitools.outcomes import NeedsApproval as NeedsApproval
    from unitools.outcomes import Outcome as Outcome
    from unitools.outcomes import ToolError as ToolError
    from unitools.registration_errors import RegistrationError as RegistrationError
    from unitools.runtime import ModelRetry as ModelRetry
    from unitools.runtime import mask as mask
    from unitools.toolsets import ToolSet as ToolSet
    from unitools.universe import Universe as Universe

_PLACES = {
    "Annotations": "calls",
    "CallMessage": "calls",
    "Context": "injection",
    "Deny": "outcomes",
    "DialectError": "dialects",
    "Expression": "expressions",
    "Factory": "injection",
    "Injected": "injection",
    "Middleware": "middlewares",
    "MiddlewareCall": "middlewares",
    "ModelRetry": "runtime",
    "Name": "expressions.name_atoms",
    "NeedsApproval": "outcomes",
    "Outcome": "outcomes",
    "Prefix": "expressions.name_atoms",
    "RegistrationError": "registration_errors",
    "Rendered": "dialects",
    "Results": "dispatch",
    "Status": "calls",
    "StreamCollector": "dialects.streams",
    "Tag": "expressions",
    "ToolCall": "calls",
    "ToolError": "outcomes",
    "ToolMetadata": "metadata",
    "ToolResult": "calls",
    "ToolSet": "toolsets",
    "ToolSpec": "calls",
    "Universe": "universe",
    "mask": "runtime",
    "middleware": "middlewares",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]
