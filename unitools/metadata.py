"""Metadata: what a Python function is as a tool.

Its signature, annotations and docstring say it: the parameters a model may give, as a pydantic model and a JSON Schema, those that
are injected, and what it returns. What cannot be said is refused where the function is written, not when a model calls it.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from unitools.calls import Annotations, ToolSpec
from unitools.docstrings import read_docstring
from unitools.expressions import Effect, Safety, Subject, Tag
from unitools.expressions.name_atoms import NAME, NAMES_ARE
from unitools.middlewares import Middleware, as_middleware
from unitools.registration_errors import NotATool
from unitools.source_locations import describe_origin, unwrap_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pydantic import BaseModel, TypeAdapter

    from unitools.function_signatures import FunctionSignature
    from unitools.injection import InjectedParameter

_WHOLE = 2**53  # up to here a float that is whole is the same number as an int
_READS = ("None", "Read")


class ToolOptions(TypedDict, total=False):
    """What an author may say of a tool beside its name, tags and middlewares."""

    description: str  # in place of the docstring's
    title: str
    side_effect: str  # unitools.expressions.EFFECTS; "": not said
    safety_class: str  # unitools.expressions.SAFETY_CLASSES
    read_only: bool
    destructive: bool
    idempotent: bool  # a second run with the same arguments changes nothing more
    open_world: bool
    timeout: float  # seconds that it may run
    ttl_seconds: int  # how long its answer stays fresh; what quotes prices, stock or routes should say it
    serial_group: str  # tools of one group run one at a time
    in_thread: bool  # False: a function that is not async runs on the event loop, and holds it up
    manifest: Mapping[str, Any]  # what only a hub asks for, as in its manifest


@dataclass(frozen=True, slots=True, eq=False, kw_only=True, repr=False)
class ToolMetadata(Subject):
    """A function as a tool. It is what expressions are matched against; ``id`` is empty where the Universe has no package."""

    fn: Callable[..., Any]
    spec: ToolSpec
    parameters_model: type[BaseModel]
    injected: tuple[InjectedParameter, ...] = ()
    output: TypeAdapter[Any]
    middlewares: tuple[Middleware, ...] = ()
    is_async: bool = False
    in_thread: bool = True
    timeout: float | None = None
    ttl_seconds: int | None = None
    serial_group: str = ""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    origin: str = ""  # where it is written

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    @property
    def injected_params(self) -> dict[str, str]:
        """Parameter → key in the context."""
        return {each.parameter: each.key for each in self.injected if not each.is_context}

    @property
    def schema_names(self) -> frozenset[str]:
        """Every name of a property in the schema of the arguments."""
        return frozenset(_property_names(self.spec.parameters))

    @property
    def output_names(self) -> frozenset[str]:
        """Every name of a property in the schema of the result."""
        return frozenset(_property_names(self.spec.output_schema))

    def validated(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values of the parameters that a model gives. JSON's types are kept: "5" is no number.

        Raises pydantic.ValidationError, or another ValueError, TypeError or RecursionError for what is no JSON.
        """
        text = json.dumps(_numbers(dict(arguments)), allow_nan=False)
        found = self.parameters_model.__pydantic_validator__.validate_json(text, strict=True)
        return {name.removeprefix("p_"): getattr(found, name) for name in self.parameters_model.model_fields}

    @classmethod
    def from_func(
        cls,
        func: Callable[..., Any],
        name: str | None = None,
        tags: Iterable[str] | None = None,
        middlewares: Iterable[Any] | None = None,
        *,
        package: str = "",
        **said: Unpack[ToolOptions],
    ) -> ToolMetadata:
        """``package``: ``group.package`` of the Universe. Raises NotATool, and ValueError for a wrong word among the rest."""
        origin = describe_origin(func)
        name = name or str(getattr(unwrap_function(func), "__name__", ""))
        if not NAME.fullmatch(name):
            raise NotATool(origin, f"{name[:130]!r} is no name of a tool ({NAMES_ARE}). Give it one.")
        docs = read_docstring(inspect.getdoc(unwrap_function(func)))
        signature = _read_signature(func, docs.parameters)
        side_effect, safety_class = said.get("side_effect", ""), said.get("safety_class", "Low")
        manifest = said.get("manifest", {})
        domains = frozenset(name for name, asked in manifest.get("capabilities", {}).items() if asked)
        spec = ToolSpec(
            name=name,
            description=said.get("description", docs.description),
            parameters=signature.parameters,
            title=said.get("title", ""),
            output_schema=signature.output_schema,
            annotations=_annotations(said, side_effect, safety_class, domains),
        )
        return cls(
            id=f"{package}.{derive_hub_segment(name)}" if package else "",
            name=name,
            tags=_tags(tags),
            side_effect=Effect(side_effect).name if side_effect else "",
            safety_class=Safety(safety_class).name,
            domains=domains,
            fn=func,
            spec=spec,
            parameters_model=signature.model,
            injected=signature.injected,
            output=signature.output,
            middlewares=tuple(as_middleware(each) for each in middlewares or ()),
            is_async=inspect.iscoroutinefunction(func),
            in_thread=said.get("in_thread", True),
            timeout=said.get("timeout"),
            ttl_seconds=said.get("ttl_seconds"),
            serial_group=said.get("serial_group", ""),
            manifest=MappingProxyType(dict(manifest)),
            origin=origin,
        )


def _read_signature(function: Callable[..., Any], described: Mapping[str, str]) -> FunctionSignature:
    """Pydantic is most of what importing takes, so it is loaded for the first tool."""
    found: FunctionSignature = importlib.import_module("unitools.function_signatures").read_signature(
        function, described
    )
    return found


def derive_hub_segment(name: str) -> str:
    """The last segment of the id in a hub. A Universe has no two tools of one segment, so it says which name it stands for."""
    said = re.sub(r"[^a-z0-9_]", "_", name.lower())
    return said if said[0].isalpha() else f"t_{said}"


def _annotations(said: ToolOptions, side_effect: str, safety_class: str, domains: frozenset[str]) -> Annotations:
    """What the author does not say follows from the side effect, as a hub judges it; without one nothing is ruled out but harm."""
    reads, network = side_effect in _READS, side_effect == "Network"
    outside = bool(domains & {"net", "browser"}) or side_effect in ("Network", "Browser")
    return Annotations(
        read_only=said.get("read_only", reads),
        destructive=said.get(
            "destructive", bool(side_effect) and not reads and (not network or safety_class == "High")
        ),
        idempotent=said.get("idempotent", reads),
        open_world=said.get("open_world", outside or not side_effect),
    )


def _tags(tags: Iterable[str] | None) -> frozenset[str]:
    if isinstance(tags, str):
        raise TypeError(f"Tags are a list: tags=[{tags!r}].")
    return frozenset(Tag(each).name for each in tags or ())


def _property_names(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            yield from properties
        for each in schema.values():
            yield from _property_names(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _property_names(each)


def _numbers(value: Any) -> Any:
    """1.0 is 1: JSON has one kind of numbers, and "integer" means those that are whole."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _WHOLE else value
    if isinstance(value, dict):
        return {key: _numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_numbers(each) for each in value]
    return value
