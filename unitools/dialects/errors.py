"""Dialect errors: what can go wrong between tools and a dialect.

DialectError
├── UnknownDialect        no driver serves that dialect or model
├── AmbiguousModel        two drivers serve a model equally well
├── NameCollision         two tools would have one name in the dialect
├── Unrenderable          a tool cannot be said in the dialect
├── UnknownResponse       a response is of no known dialect
├── AmbiguousResponse     a response could be of two dialects
├── UnreadableResponse    a response is no whole answer: a stream that broke off, several choices to take one of
├── ResponseTooLarge              a response is larger or nested deeper than is read
└── NotJson               a response holds what JSON cannot: NaN, Infinity, a key twice
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class DialectError(Exception):
    """The root of this module's errors. ``str()`` is a sentence for the caller; it never quotes what a model wrote."""


class UnknownDialect(DialectError, ValueError):
    """No driver serves that dialect or model."""


class AmbiguousModel(DialectError):
    """Two drivers serve a model equally well."""


class NameCollision(DialectError, ValueError):
    """Two tools would have one name in the dialect."""

    def __init__(self, dialect: str, rendered: str, first: str, second: str) -> None:
        self.rendered, self.tools = rendered, (first, second)
        super().__init__(
            f"The tools {first!r} and {second!r} would both be {rendered!r} in {dialect}: rename one of them."
        )


class Unrenderable(DialectError, ValueError):
    """A tool cannot be said in the dialect."""

    def __init__(self, dialect: str, tool: str, pointer: str, reason: str) -> None:
        self.tool, self.pointer, self.reason = tool, pointer, reason
        at = f" at {pointer}" if pointer else ""
        super().__init__(f"The tool {tool!r} cannot be rendered for {dialect}{at}: {reason}")


class UnknownResponse(DialectError, ValueError):
    """A response is of no known dialect."""


class AmbiguousResponse(DialectError, ValueError):
    """A response could be of two dialects."""

    def __init__(self, dialects: Sequence[str]) -> None:
        self.dialects = tuple(dialects)
        super().__init__(f"The response could be of {' or '.join(dialects)}: say which.")


class UnreadableResponse(DialectError, ValueError):
    """A response is no whole answer: a stream that broke off, several choices to take one of."""


class ResponseTooLarge(DialectError, ValueError):
    """A response is larger or nested deeper than is read."""


class NotJson(DialectError, ValueError):
    """A response holds what JSON cannot: NaN, Infinity, a key twice."""
