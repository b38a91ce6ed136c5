"""MCP servers: what do servers of others look like that tests bring? Each is a wheel of one module, without any SDK."""

from __future__ import annotations

import json
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import BoxKey, Profile
from tests.support.sandboxes import call_of
from tests.support.wheels import make_wheel
from unitools.brought_tools import Source, draft_tools
from unitools.mcp_listings import LISTING_FILE, Listing
from unitools.packages import zip_files
from unitools.publications import derive_package_name

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from invocations.sandbox.base import Limits, RunEvent, RunOutcome
    from invocations.sandbox.docker import DockerSandbox

PROTOCOL = "2025-11-25"
PACKAGE = "a-server"
START = {"script": "a-server"}
STARTED = START | {"package": PACKAGE}  # as a box is told

# `answer(method, params, id)` gives what is sent for a request, or None; `TOOLS` what is listed.
_LOOP = """
import json, sys
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def text(said, **more):
    return {"content": [{"type": "text", "text": said}], **more}
def main():
    for line in sys.stdin:
        asked = json.loads(line)
        method, params, id = asked.get("method"), asked.get("params") or {}, asked.get("id")
        if method == "initialize":
            result = begin(params)
        elif method == "tools/list":
            result = list_tools(params | {"id": id})
        elif method == "tools/call":
            result = call(params["name"], params["arguments"], params | {"id": id})
        else:
            continue
        if result is not None:
            send(id=id, result=result)
def begin(params):
    return {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "a", "version": "1"}}
def list_tools(params):
    return {"tools": TOOLS}
"""

OPEN = {"type": "object"}
ECHO: dict[str, Any] = {
    "name": "Echo-Text",
    "description": "Gives the text back.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": True},
}
_HONEST = """
import os, time
ENVIRONMENT_AT_IMPORT = os.environ.get("KEY")
calls = 0
def call(name, arguments, params):
    global calls
    calls += 1
    match name:
        case "Echo-Text":
            return text("x", structuredContent={"text": arguments["text"]})
        case "lie":
            return text("x", structuredContent={"number": "no number"})
        case "forget":
            return text("x")
        case "say":
            return text(arguments["text"])
        case "fail":
            return text("There is no such city.", isError=True)
        case "draw":
            return {"content": [{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
                                {"type": "resource", "resource": {"uri": "a://b", "mimeType": "application/x-a", "blob": "AAE="}}]}
        case "ask":
            send(id="s1", method="sampling/createMessage", params={})
            answer = json.loads(sys.stdin.readline())
            return text(str(answer["error"]["code"]))
        case "count":
            kept = os.path.exists("/w/kept")
            open("/w/kept", "w").close()
            return text(f"{calls} {kept} {os.getcwd()}")
        case "progress":
            token = params["_meta"]["progressToken"]
            for done in (1, 2):
                send(method="notifications/progress",
                     params={"progressToken": token, "progress": done, "total": 4, "message": f"step {done}"})
            return text("done")
        case "environment":
            return text(json.dumps([ENVIRONMENT_AT_IMPORT, os.environ.get("KEY"), os.environ.get("ZONE"), sys.argv[1:]]))
        case "hang":
            print("I hang", file=sys.stderr, flush=True)
            time.sleep(3600)
        case "reach":
            import socket
            try:
                socket.create_connection(("203.0.113.7", 443), timeout=5)
            except OSError as error:
                return text(type(error).__name__, isError=True)
"""
HONEST_TOOLS: list[dict[str, Any]] = [
    ECHO,
    {
        "name": "lie",
        "inputSchema": OPEN,
        "outputSchema": {"type": "object", "properties": {"number": {"type": "number"}}},
    },
    {"name": "forget", "inputSchema": OPEN, "outputSchema": OPEN},
    *(
        {"name": name, "inputSchema": OPEN}
        for name in ("say", "fail", "draw", "ask", "count", "progress", "environment", "hang", "reach")
    ),
]


def source_of(code: str, tools: Iterable[dict[str, Any]] = (ECHO,)) -> str:
    """The module of a server: what is common to all, then ``code``."""
    return f"{_LOOP}\nTOOLS = {list(tools)!r}\n{textwrap.dedent(code)}\n"


HONEST = source_of(_HONEST, HONEST_TOOLS)


def make_server(folder: Path, source: str = HONEST, version: str = "1.0") -> str:
    """A wheel of the server in a wheelhouse; its SHA-256."""
    scripts = "[console_scripts]\na-server = a_server:main\n"
    return make_wheel(
        folder, PACKAGE, version, code=source, files={f"a_server-{version}.dist-info/entry_points.txt": scripts}
    )


def lay_out_server(folder: Path, source: str = HONEST) -> Path:
    """The same as the hub's builder would lay it out, for a box."""
    (folder / "a_server-1.0.dist-info").mkdir(parents=True)
    (folder / "a_server.py").write_text(source)
    # Says how often it was run, and as what.
    (folder / "a_module.py").write_text(f"import sys\nsys.stderr.write(f'I am {{__name__}}.\\n')\n{source}\nmain()\n")
    about = folder / "a_server-1.0.dist-info"
    (about / "entry_points.txt").write_text("[console_scripts]\na-server = a_server:main\n")
    (about / "RECORD").write_text("a_server.py,,\na_module.py,,\n")
    return folder


def listing_of(tools: Iterable[dict[str, Any]] = HONEST_TOOLS) -> Listing:
    return Listing.from_json({"protocol": PROTOCOL, "tools": list(tools)})


def pin(tools: Iterable[dict[str, Any]] = HONEST_TOOLS) -> bytes:
    """The package of a tool of a server that lists these."""
    return zip_files([(f"mcp_a/{LISTING_FILE}", listing_of(tools).to_bytes())])


PINNED = pin()


def draft_of(
    *names: str, listing: Listing | None = None, version: str = "1.0", **start: Any
) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Manifests of these tools and the files of their package, as `unitools bring` writes them."""
    listing = listing or listing_of()
    source = Source(PACKAGE, version, "mcp.a", START | start)
    drafts = draft_tools(listing, source, names)
    return [each.document for each in drafts], {
        f"{derive_package_name(source.group)}/{LISTING_FILE}": listing.to_bytes()
    }


def ask_server(
    sandbox: DockerSandbox,
    folder: Path,
    tool: str,
    *,
    level: str = "fresh",
    tenant: str = "tenant",
    structured: bool = False,
    limits: Limits,
    start: dict[str, Any] | None = None,
    events: list[RunEvent] | None = None,
    given: dict[str, Any] | None = None,
    pinned: bytes = PINNED,
    profile: Profile | None = None,
    **arguments: Any,
) -> RunOutcome:
    """One call of a server that was laid out in the folder, in a box; without a ``tool`` its list."""
    start = start or STARTED
    call = replace(
        call_of(pinned, **arguments),
        dependencies=folder,
        key=BoxKey(tenant, json.dumps(start), dependencies=str(folder)),
        server=start,
        asks={"tool": tool, "structured": structured} if tool else {},
        **(given or {}),
    )
    return sandbox.run(profile or Profile(limits, isolation=level), call, None if events is None else events.append)
