"""Markdown: how tools are told to a person, or in a document."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unitools.dialects.renderers.base import inline_if_possible, render_each
from unitools.dialects.schemas import format_value, list_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes

_PLAIN = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "description", "default", "enum", "const"}
)


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """One section for each tool: what it is for, what it takes, and its schema where a list does not say all of it."""

    def say(tool: ToolSpec, _name: str, notes: Notes) -> str:
        return "\n".join(_section(tool, inline_if_possible(tool.parameters, notes)))

    rendered = render_each("markdown", tools, options, say)
    return replace(rendered, payload="\n".join(rendered.payload))


def _section(tool: ToolSpec, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"## {_code(tool.name)}"
    yield ""
    if tool.title:
        yield f"**{_text(tool.title)}**"
        yield ""
    if tool.description:
        yield re.sub(r"^(\s*)(#|```|~~~)", r"\1\\\2", tool.description.strip(), flags=re.MULTILINE)
        yield ""
    properties = schema.get("properties", {})
    if not properties:
        yield "Takes no parameters."
    required = schema.get("required", ())
    for name, each in properties.items():
        yield _parameter(name, each if isinstance(each, dict) else {}, required=name in required)
    yield ""
    if any(
        (isinstance(each, dict) and not set(each) <= _PLAIN) or "object" in _types(each) for each in properties.values()
    ):
        yield from _fenced("Parameters as JSON Schema:", schema)
    if tool.output_schema:
        yield from _fenced("Returns, as JSON Schema:", tool.output_schema)


def _types(schema: Any) -> tuple[str, ...]:
    return list_types(schema) if isinstance(schema, dict) else ()


def _parameter(name: str, schema: Mapping[str, Any], *, required: bool) -> str:
    facts = [" or ".join(_types(schema)) or "any", "required" if required else "optional"]
    if "enum" in schema:
        facts.append("one of " + ", ".join(format_value(value) for value in schema["enum"]))
    if "default" in schema:
        facts.append(f"default {format_value(schema['default'])}")
    said = f"- {_code(name)} ({', '.join(facts)})"
    return f"{said}: {_text(schema['description'])}" if schema.get("description") else said


def _fenced(title: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield title
    yield ""
    text = json.dumps(schema, ensure_ascii=False, indent=2)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    yield f"{fence}json"
    yield text
    yield fence
    yield ""


def _text(text: str) -> str:
    """On one line."""
    return " ".join(text.split())


def _code(name: str) -> str:
    said = _text(name)
    tick = "`" * (1 + max((len(run) for run in re.findall("`+", said)), default=0))
    return f"{tick}{said}{tick}" if len(tick) == 1 else f"{tick} {said} {tick}"
