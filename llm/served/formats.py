"""Formats: what a served format has to do, and what passes between it and whoever serves it.

A format reads a body into the arguments that the hub's own chat takes, and writes the hub's own answer as its callers expect it. It
knows no web framework and decides nothing: who may ask which model, and what that costs, is the hub's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.problems import Problem
    from llm.answers import ChatDelta
    from llm.pictures import Picture
    from llm.served.parameters import Parameter
    from unitools.calls import ToolSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedChat:
    """What a body asks for.

    ``arguments``: what ``/api/v1/models/{id}/chat`` takes; its tools are names and expressions. ``own_tools``: bodies that the caller
    wrote, by the names that it gave them. ``envelope``: fields of the hub's envelope. ``warnings``: what was left out, and said.
    ``pictures``: those that stood in the body, by the ids that the arguments have for them.
    """

    model: str
    arguments: dict[str, Any]
    own_tools: tuple[ToolSpec, ...] = ()
    envelope: dict[str, Any] = field(default_factory=dict)
    wants_stream: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)  # of the stream, for :meth:`ChatFormat.open_stream`
    warnings: tuple[str, ...] = ()
    pictures: Mapping[str, Picture] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """Around an answer: the id of its call, the model that was asked for, when, and what tools are called to this caller.

    ``names``: by the ids of the tools. A tool that is not there is called by its id.
    """

    call_id: str
    model: str
    created: int  # seconds since 1970
    names: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)  # of the request, for formats that repeat them

    def name_tool(self, id: str) -> str:
        return self.names.get(id, id)


class StreamWriter(Protocol):
    """One answer as server-sent events. A stream has either an end or a failure, and nothing behind it."""

    def add(self, delta: ChatDelta) -> str:
        """The text of a piece; empty where the format has nothing to say of it."""

    def end(self, answer: dict[str, Any], warnings: tuple[str, ...] = ()) -> str:
        """What is left to say of the whole answer, and the marks of a good end. Where no piece was added, that is all of it."""

    def fail(self, problem: Problem) -> str:
        """The error that ends the stream. No mark of a good end follows."""


class ChatFormat(Protocol):
    """A format of conversations. ``answer`` is always the hub's own, as ``/api/v1/models/{id}/chat`` answers it as its ``data``."""

    name: ClassVar[str]
    parameters: ClassVar[tuple[Parameter, ...]]  # all that a body may have

    def read(self, body: Any) -> ServedChat:
        """What a body asks for. Raises SchemaInvalid or ParameterUnsupported, with the place of each mistake in the body."""

    def write(self, answer: dict[str, Any], about: Answered) -> dict[str, Any]:
        """The answer as a whole."""

    def open_stream(self, about: Answered, options: Mapping[str, Any]) -> StreamWriter: ...

    def write_problem(self, problem: Problem) -> tuple[int, dict[str, Any]]:
        """The status and the body of an answer that is a problem."""
