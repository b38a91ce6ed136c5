"""Dialects: the driver that serves a model, and the one that reads a response.

One registry of tools is rendered in every dialect and dispatched from every dialect. The errors are drawn in
:mod:`unitools.dialects.errors`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from unitools.dialects.base import AS_USUAL, Diagnostic, Driver, ReadOptions, Rendered, RenderOptions
from unitools.dialects.drivers import DRIVERS
from unitools.dialects.errors import (
    AmbiguousModel,
    AmbiguousResponse,
    DialectError,
    NameCollision,
    NotJson,
    ResponseTooLarge,
    UnknownDialect,
    UnknownResponse,
    UnreadableResponse,
    Unrenderable,
)
from unitools.dialects.model_profiles import ModelProfile
from unitools.dialects.renderers import markdown
from unitools.dialects.response_decoder import decode_response
from unitools.dialects.streams import StreamCollector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec

__all__ = [
    "DRIVERS",
    "AmbiguousModel",
    "AmbiguousResponse",
    "Diagnostic",
    "DialectError",
    "Driver",
    "ModelProfile",
    "NameCollision",
    "NotJson",
    "ReadOptions",
    "RenderOptions",
    "Rendered",
    "ResponseTooLarge",
    "StreamCollector",
    "UnknownDialect",
    "UnknownResponse",
    "UnreadableResponse",
    "Unrenderable",
    "find_driver",
    "recognise_response",
    "render",
]


def render(
    tools: Sequence[ToolSpec],
    model_or_dialect: str,
    options: RenderOptions = AS_USUAL,
    drivers: Sequence[Driver] = DRIVERS,
) -> Rendered:
    """The tools as the model's API takes them, in the order given; "markdown" is for people.

    Raises UnknownDialect, AmbiguousModel, NameCollision, and Unrenderable unless the options say skip.
    """
    if model_or_dialect == "markdown":
        return markdown.render(tools, options)
    driver = find_driver(model_or_dialect, drivers)
    if driver.dialect == model_or_dialect:
        return driver.render(tools, options)
    profile = ModelProfile.from_name(model_or_dialect)
    rendered = driver.render(tools, options if options.profile else replace(options, profile=profile))
    return replace(rendered, diagnostics=(*profile.diagnostics(), *rendered.diagnostics))


def find_driver(model_or_dialect: str, drivers: Sequence[Driver] = DRIVERS) -> Driver:
    """The driver of a dialect, or the one that serves a model best. Raises UnknownDialect, AmbiguousModel."""
    for driver in drivers:
        if driver.dialect == model_or_dialect:
            return driver
    profile = ModelProfile.from_name(model_or_dialect)
    scores = {driver.dialect: driver.can_handle(profile) for driver in drivers}
    best = max(scores.values(), default=0)
    if not best:
        raise UnknownDialect(f"No driver serves {model_or_dialect!r}; there are {', '.join(scores) or 'none'}.")
    winners = [driver for driver in drivers if scores[driver.dialect] == best]
    if len(winners) > 1:
        raise AmbiguousModel(
            f"{model_or_dialect!r} is served equally well by {' and '.join(each.dialect for each in winners)}: name a dialect."
        )
    return winners[0]


def recognise_response(response: object, drivers: Sequence[Driver] = DRIVERS) -> Driver:
    """The driver whose dialect the response is of. Raises UnknownResponse, AmbiguousResponse, ResponseTooLarge, NotJson."""
    shape = decode_response(response)
    scores = {driver.dialect: driver.detect(shape) for driver in drivers}
    best = max(scores.values(), default=0)
    if not best:
        raise UnknownResponse(f"The response is of none of the known dialects: {', '.join(scores)}.")
    winners = [driver for driver in drivers if scores[driver.dialect] == best]
    if len(winners) > 1:
        raise AmbiguousResponse([each.dialect for each in winners])
    return winners[0]
