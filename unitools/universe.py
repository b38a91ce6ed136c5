"""Universe: all tools, middlewares and drivers together, and the way in which a model uses them.

A model's answer goes through :meth:`Universe.dispatch`: it is recognised, its calls are read, filtered and run through their layers,
and each gets one result, in order.
"""

from __future__ import annotations

import logging
import re
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, Unpack, overload

from unitools.calls import ToolCall, ToolResult
from unitools.concurrency import Slots
from unitools.dialects import DRIVERS, ReadOptions, UnknownResponse, find_driver, recognise_response
from unitools.dialects.response_decoder import decode_response
from unitools.dialects.text_calls import TextDriver, describe_untrusted_text, unfold_text
from unitools.dialects.tool_names import NAMED, derive_dialect_name, map_dialect_names
from unitools.dispatch import CallJob, Results, answer_unknown_tool, answer_unusable_call, run_all, run_job
from unitools.expressions import Expression, Tag
from unitools.injection import Context, FactoryValues
from unitools.metadata import ToolMetadata, ToolOptions, derive_hub_segment
from unitools.middlewares import as_middleware
from unitools.outcomes import Deny, build_error_result
from unitools.pipeline import Layer, build_chain
from unitools.provisions import Provisions
from unitools.registration_errors import ToolNameTaken
from unitools.tool_methods import Marks, find_methods, is_in_class_body, make_instance
from unitools.toolsets import ToolSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from unitools.dialects import Driver, Rendered
    from unitools.dispatch import OnMessage

logger = logging.getLogger("unitools")

F = TypeVar("F", bound="Callable[..., Any]")
C = TypeVar("C", bound=type)
M = TypeVar("M")
READ_ALREADY = "openai"  # the dialect in which calls are answered that came in none
_SEGMENT = "[a-z][a-z0-9_]*"
_NAME = re.compile(rf"({_SEGMENT}(\.{_SEGMENT})?)?")


class AgentModel(Protocol):
    """A model that can be asked in a loop with the tools of a Universe."""

    async def run_agent(self, universe: Universe, messages: Iterable[Any], **options: Any) -> Any:
        """The answer that it comes to."""


class Universe:
    """All tools of a program.

    ``name``: ``group.package``, under which the tools stand in a hub; without it none can be pushed there. ``version``: theirs in the
    hub, SemVer. ``threads``: how many tools that are not async run at a time. ``key``: proves that an answer in XML is one to a prompt
    of this Universe; processes that share prompts share it. Without one it is random.
    """

    def __init__(
        self,
        name: str = "",
        *,
        version: str = "",
        drivers: Iterable[Driver] = DRIVERS,
        threads: int = 32,
        key: bytes = b"",
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a Universe: it is group.package, small letters, digits and _.")
        if threads < 1:
            raise ValueError("Tools that are not async need a thread: threads=1.")
        self.name, self.version = name, version
        self.drivers = list(drivers)
        self._provisions = Provisions()
        self._key = key or secrets.token_bytes(32)
        self._tools: dict[str, ToolMetadata] = {}
        self._global: list[Layer] = []
        self._scoped: list[tuple[Expression, Layer]] = []
        self._chains: dict[str, tuple[Layer, ...]] = {}
        self._taken: dict[tuple[str, str], ToolMetadata] = {}
        self._marks = Marks()
        self._slots = Slots(threads)

    # Registering

    @overload
    def tool(self, name: F) -> F: ...

    @overload
    def tool(
        self,
        name: str | None = None,
        tags: Iterable[str] | None = None,
        middlewares: Iterable[Any] | None = None,
        **said: Unpack[ToolOptions],
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        name: Any = None,
        tags: Iterable[str] | None = None,
        middlewares: Iterable[Any] | None = None,
        **said: Unpack[ToolOptions],
    ) -> Any:
        """A decorator: the function is a tool. A method is registered when its class is bound. Raises a RegistrationError."""
        if callable(name) or isinstance(name, (staticmethod, classmethod)):
            return self.tool()(name)

        def decorate(function: F) -> F:
            if is_in_class_body(function):
                self._marks.add(function, {"name": name, "tags": tags, "middlewares": middlewares, **said})
            else:
                self._register(function, name, tags, middlewares, said)
            return function

        return decorate

    def bind(
        self,
        prefix: str = "",
        tags: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        middlewares: Iterable[Any] | None = None,
        **said: Unpack[ToolOptions],
    ) -> Callable[[C], C]:
        """A decorator: an object of the class is made, and its public methods are tools. Raises a RegistrationError."""

        def decorate(cls: C) -> C:
            self.add(make_instance(cls), prefix, tags, exclude, middlewares, **said)
            return cls

        return decorate

    def add(
        self,
        thing: Any,
        prefix: str = "",
        tags: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        middlewares: Iterable[Any] | None = None,
        **said: Unpack[ToolOptions],
    ) -> ToolSet:
        """The object's public methods are tools, and those that are marked by ``tool``. ``exclude``: names, as "close" or "get_*".

        What a method says of itself comes before what is said of all; tags and middlewares add up. Raises a RegistrationError.
        """
        shared_tags, shared_layers = list(tags or ()), list(middlewares or ())
        if isinstance(tags, str):
            raise TypeError(f"Tags are a list: tags=[{tags!r}].")
        found = []
        for method_name, method in find_methods(thing, exclude, self._marks):
            own = self._marks.bound(method)
            rest = {key: value for key, value in own.items() if key not in ("name", "tags", "middlewares")}
            found.append(
                self._register(
                    method,
                    prefix + (own.get("name") or method_name),
                    [*shared_tags, *(own.get("tags") or ())],
                    [*shared_layers, *(own.get("middlewares") or ())],
                    {**said, **rest},  # type: ignore[typeddict-item]
                )
            )
        return self._set(found)

    def use(self, middleware: M, scope: Expression | str | None = None, critical: bool = True) -> M:
        """A layer around every tool, or around those of a scope. Where it fails, a critical one ends the call; any other is left out.

        Gives back what it was given, so it is a decorator too. Raises MiddlewareClash, TypeError.
        """
        layer = Layer(as_middleware(middleware), critical, stated=True)
        everywhere = [*self._global, layer] if scope is None else self._global
        scoped = self._scoped if scope is None else [*self._scoped, (_expression(scope), layer)]
        self._chains = {name: _chain(tool, everywhere, scoped) for name, tool in self._tools.items()}
        self._global, self._scoped = everywhere, scoped
        return middleware

    def provide(self, key: str, value: Any, *, closes: bool = True) -> None:
        """What is injected under the key when a call's context has nothing there. A :class:`~unitools.injection.Factory` makes it
        when it is needed.

        ``closes``: it is closed with the Universe (:class:`~unitools.provisions.Provisions`); False for what others use as well.
        """
        self._provisions.add(key, value, closes=closes)

    @property
    def provided(self) -> Mapping[str, Any]:
        """What :meth:`provide` was given, by its key."""
        return self._provisions.values

    # Closing

    def close(self) -> None:
        """Close what it was provided with, the last first; it runs no call any more. Raises NeedsAsync where that has to be awaited,
        and closes nothing then. ``with Universe(…) as u`` does it at the end of the block."""
        self._provisions.close()

    async def aclose(self) -> None:
        """As :meth:`close`, and awaits what has to be. ``async with Universe(…) as u`` does it at the end of the block."""
        await self._provisions.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _register(
        self,
        function: Callable[..., Any],
        name: str | None,
        tags: Iterable[str] | None,
        middlewares: Iterable[Any] | None,
        said: ToolOptions,
    ) -> ToolMetadata:
        package = self.name if "." in self.name else ""
        tool = ToolMetadata.from_func(function, name, tags, middlewares, package=package, **said)
        places = list(_places(tool.name))
        for place in places:
            if other := self._taken.get(place):
                raise ToolNameTaken(_taken(tool, other, *place))
        self._chains[tool.name] = _chain(tool, self._global, self._scoped)
        self._taken |= dict.fromkeys(places, tool)
        self._tools[tool.name] = tool
        return tool

    # Choosing

    @property
    def tools(self) -> ToolSet:
        """All of them. Raises NotBound."""
        return self._set(self._registered().values())

    def render(
        self,
        model: str,
        *,
        strict: Literal["auto"] | bool = "auto",
        on_unrenderable: Literal["error", "skip"] = "error",
    ) -> Rendered:
        """All of them, as :meth:`~unitools.toolsets.ToolSet.render` renders some."""
        return self.tools.render(model, strict=strict, on_unrenderable=on_unrenderable)

    def __getitem__(self, query: Expression | str) -> ToolSet:
        """The tools that an expression names; a text is a tag. Raises NotBound, and ValueError for a text that is none."""
        expression = _expression(query)
        return self._set(tool for tool in self._registered().values() if expression.matches(tool))

    def __iter__(self) -> Iterator[ToolMetadata]:
        return iter(self.tools)

    def __repr__(self) -> str:
        return f"<Universe {self.name}>" if self.name else "<Universe>"

    def _set(self, tools: Iterable[ToolMetadata]) -> ToolSet:
        return ToolSet(tools, self.drivers, key=self._key, version=self.version)

    def _registered(self) -> dict[str, ToolMetadata]:
        self._marks.check_all_bound()
        return self._tools

    # Running

    async def dispatch(
        self,
        response: Any,
        context: Mapping[str, Any] | None = None,
        tool_filter: Expression | str | None = None,
        *,
        rendered: Rendered | None = None,
        trust_text: str = "",
        parallel: int = 8,
        timeout: float | None = None,
        on_message: OnMessage | None = None,
    ) -> Results:
        """One result for each call that a model's answer proposes, in its order; none for an answer without calls.

        Args:
            response: an object of a provider's SDK, its JSON, a stream's text or list of chunks, text, or calls that were read already
                (answered in OpenAI's dialect).
            context: what tools have injected and middlewares see.
            tool_filter: calls of other tools are denied.
            rendered: what the model was shown; calls of other tools are denied, and the dialect need not be recognised. Give it with
                what a model wrote as text: unless XML was asked for, JSON in a text is taken for a provider's answer, which needs no
                nonce.
            trust_text: the form in which this model writes calls into its text (:mod:`unitools.dialects.text_calls`); they are run as
                its own.
            parallel: how many calls run at a time.
            timeout: seconds for each call, all its layers included.
            on_message: is told what tools say while they run, in the thread in which they do. What it raises is logged, and the tool
                goes on.

        Raises a DialectError for an answer that cannot be read, NotBound, ValueError; no error of a tool.
        """
        self._provisions.check_open()
        if parallel < 1:
            raise ValueError("At least one call runs at a time: parallel=1.")
        tools = self._registered()
        driver, calls, looks_like = self._read_calls(response, rendered, trust_text)
        expression = None if tool_filter is None else _expression(tool_filter)
        shown = set(rendered.names.values()) if rendered else tools.keys()
        visible = [name for name in tools if name in shown and (expression is None or expression.matches(tools[name]))]
        given, made = Context({**self.provided, **(context or {})}), FactoryValues()
        jobs = [self._job(call, visible, given, made, timeout, on_message) for call in calls]
        return Results(await run_all(jobs, parallel=parallel), driver, (looks_like,) if looks_like else ())

    async def run(self, model: AgentModel, messages: Iterable[Any], **options: Any) -> Any:
        """Ask a model, run what it proposes, tell it what came of that, and ask again, until it has an answer.

        ``model``: one of ``toolhub_llm``, which says what messages are, which ``options`` there are (``tools``, ``context``,
        ``limits`` and the parameters of a request) and what comes back (``toolhub_llm.agent_loop``). Raises what the model raises;
        an error of a tool is told the model.
        """
        return await model.run_agent(self, messages, **options)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        context: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        stops_tools: bool = True,
        on_message: OnMessage | None = None,
    ) -> ToolResult:
        """One call through its layers, as if a model had made it. Raises NotBound; no error of a tool.

        ``stops_tools``: by the timeouts that they name; else whoever runs the program stops them, as a hub does.
        """
        self._provisions.check_open()
        given = Context({**self.provided, **(context or {})})
        call = ToolCall("call_0", name, dict(arguments or {}))
        job = self._job(call, list(self._registered()), given, FactoryValues(), timeout, on_message)
        return job if isinstance(job, ToolResult) else await run_job(replace(job, stops_tools=stops_tools))

    def _read_calls(
        self, response: Any, rendered: Rendered | None, trust_text: str
    ) -> tuple[Driver, Sequence[ToolCall], str]:
        """Who answers, the calls, and what a text without any looks like."""
        is_list = isinstance(response, tuple) or (isinstance(response, list) and response)
        if is_list and all(isinstance(each, ToolCall) for each in response):
            return find_driver(rendered.dialect if rendered else READ_ALREADY, self.drivers), response, ""
        if trust_text and not ((answer := unfold_text(response)) and answer.calls):
            trusted: Driver = TextDriver(trust_text)
            return trusted, trusted.parse(response, self._reading(READ_ALREADY, rendered)), ""
        decoded = decode_response(response)
        try:
            driver = (
                find_driver(rendered.dialect, self.drivers) if rendered else recognise_response(decoded, self.drivers)
            )
            calls = driver.parse(decoded, self._reading(driver.dialect, rendered))
        except UnknownResponse as error:
            if isinstance(response, str) and (looks_like := describe_untrusted_text(response)):
                raise UnknownResponse(f"{error} {looks_like}") from error
            raise
        return driver, calls, "" if calls else describe_untrusted_text(decoded)

    def _reading(self, dialect: str, rendered: Rendered | None) -> ReadOptions:
        destructive = frozenset(name for name, tool in self._tools.items() if tool.spec.annotations.destructive)
        schemas = {name: tool.spec.parameters for name, tool in self._tools.items()}
        if rendered:
            return rendered.reading(destructive=destructive, schemas=schemas)
        names = map_dialect_names(dialect, self._tools, on_collision="skip")
        return ReadOptions(names, destructive, self._key, schemas)

    def _job(
        self,
        call: ToolCall,
        visible: list[str],
        context: Context,
        made: FactoryValues,
        timeout: float | None,
        on_message: OnMessage | None,
    ) -> CallJob | ToolResult:
        tool = self._tools.get(call.name)
        if tool is None:
            answer = (
                answer_unusable_call(call) if call.problem and not call.name else answer_unknown_tool(call, visible)
            )
            return replace(answer, call=call)
        if tool.name not in visible:
            logger.warning("A call of %s is denied: it is none of the tools that were offered.", tool.name)
            return replace(build_error_result(Deny()), call=call)
        if call.problem or call.arguments is None:
            return replace(answer_unusable_call(call), call=call)
        chain = self._chains[tool.name]
        return CallJob(call, tool, chain, context, made, self._slots, timeout, on_message=on_message)


def _expression(query: Expression | str) -> Expression:
    return Tag(query) if isinstance(query, str) else query


def _chain(
    tool: ToolMetadata, everywhere: Iterable[Layer], scoped: Iterable[tuple[Expression, Layer]]
) -> tuple[Layer, ...]:
    matching = (layer for scope, layer in scoped if scope.matches(tool))
    return build_chain([*everywhere, *matching, *map(Layer, tool.middlewares)])


def _places(name: str) -> Iterator[tuple[str, str]]:
    """Where a name has to be alone: here, in each dialect, and in a hub."""
    yield "", name
    for dialect in NAMED:
        yield dialect, derive_dialect_name(dialect, name)
    yield "a hub", derive_hub_segment(name)


def _taken(tool: ToolMetadata, other: ToolMetadata, dialect: str, said: str) -> str:
    both = f"{tool.origin} and {other.origin}"
    if not dialect:
        return f"Two tools are called {said}: {both}."
    return f"The tools {tool.name} and {other.name} would both be {said} in {dialect}: {both}. Rename one of them."
