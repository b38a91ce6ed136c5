"""Snippets: the same call as a program would make it, to be copied: with curl, in Python, over MCP."""

from __future__ import annotations

import json
import pprint
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from django.utils.translation import gettext_lazy

from invocations.mcp.meta_keys import ENVELOPE
from unitools.command.push import KEY_VARIABLE

if TYPE_CHECKING:
    from uuid import UUID

    from django.utils.functional import _StrPromise

_AUTHORIZED = f'-H "Authorization: Bearer ${KEY_VARIABLE}"'
_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Snippet:
    name: str
    label: str | _StrPromise
    text: str


def build_snippets(tool: str, arguments: dict[str, Any], *, is_dry: bool, hub: str, token: UUID) -> list[Snippet]:
    """The key of an agent is read from the environment: it stands in no line that is copied."""
    said = (tool, arguments, is_dry, hub.rstrip("/"))
    return [
        Snippet("curl", "curl", _write_curl(*said, token=token)),
        Snippet("python", "Python", _write_python(*said)),
        Snippet("mcp", gettext_lazy("MCP, as a request"), _write_mcp(*said)),
    ]


def _write_curl(tool: str, arguments: dict[str, Any], is_dry: bool, hub: str, *, token: UUID) -> str:
    body: dict[str, Any] = {"request_id": f"curl-{token.hex}", "actor": {"type": "agent", "id": "curl"}}
    body |= {"dry_run": True} if is_dry else {}
    return (
        f"curl -sS {shlex.quote(f'{hub}/api/v1/tools/{quote(tool)}/invoke')} \\\n"
        f"  {_AUTHORIZED} -H 'Content-Type: application/json' \\\n"
        f"  -d {_quote_json(body | {'arguments': arguments})}"
    )


def _write_python(tool: str, arguments: dict[str, Any], is_dry: bool, hub: str) -> str:
    literal = pprint.pformat(arguments, width=_WIDTH, sort_dicts=False)
    dry = ", dry_run=True" if is_dry else ""
    return (
        "import os\n\n"
        "from unitools.hub import HubClient\n\n"
        f"arguments = {literal}\n"
        f'with HubClient({hub!r}, os.environ["{KEY_VARIABLE}"]) as hub:\n'
        f"    print(hub.invoke({tool!r}, arguments{dry}).data)"
    )


def _write_mcp(tool: str, arguments: dict[str, Any], is_dry: bool, hub: str) -> str:
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    params |= {"_meta": {ENVELOPE: {"dry_run": True}}} if is_dry else {}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (
        f"curl -sS {shlex.quote(f'{hub}/mcp')} \\\n"
        f"  {_AUTHORIZED} -H 'Content-Type: application/json' \\\n"
        "  -H 'Accept: application/json, text/event-stream' \\\n"
        f"  -d {_quote_json(message)}"
    )


def _quote_json(value: Any) -> str:
    return shlex.quote(json.dumps(value, ensure_ascii=False))
