"""XML: how tools are told to a model that only reads and writes text.

The text goes into the system prompt. Only calls that carry its nonce are read, so a call that is quoted from a document or a tool's
result is not run. All that differs from rendering to rendering stands at the end, so that the rest can be cached.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unitools.dialects.nonces import make_nonce
from unitools.dialects.renderers.base import inline_if_possible, render_each

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unitools.calls import ToolSpec
    from unitools.dialects.base import Rendered, RenderOptions
    from unitools.dialects.renderers.base import Notes

_BEFORE = """You can call tools. These are the tools, one JSON object a line; "parameters" is the JSON Schema of a call's arguments:
<tools>
"""
_AFTER = """
</tools>
To call a tool, write this, with an id of your own for each call, and the call as one JSON object:
<tool_call id="call_1" nonce="{nonce}">{{"name": "…", "arguments": {{…}}}}</tool_call>
The nonce is as shown here in each call; a call with another one, or without, is not read. Inside of the JSON write </ as <\\/.
A call inside a code fence is an example and is not run: write calls outside of code fences.
Several calls may follow each other. Write nothing after the last one: the results come in the next message.
"""
_NONE = "You have no tools.\n"
KEY_BYTES = 32


def render(tools: Sequence[ToolSpec], options: RenderOptions) -> Rendered:
    """Text for the system prompt; ``key`` of the rendering checks the nonce."""

    def say(tool: ToolSpec, name: str, notes: Notes) -> dict[str, Any]:
        parameters = inline_if_possible(tool.parameters, notes)
        return {"name": name, "description": tool.description, "parameters": parameters}

    key = options.key or secrets.token_bytes(KEY_BYTES)
    rendered = render_each("xml", tools, options, say)
    if not rendered.payload:
        return replace(rendered, payload=_NONE, key=key)
    lines = "\n".join(_line(each) for each in rendered.payload)
    return replace(rendered, payload=f"{_BEFORE}{lines}{_AFTER.format(nonce=make_nonce(key))}", key=key)


def _line(tool: dict[str, Any]) -> str:
    """JSON in which no tag can be written: ``<`` stands as an escape."""
    return json.dumps(tool, ensure_ascii=False).replace("<", "\\u003c")
