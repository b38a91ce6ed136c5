"""Npm packages: what do packages of npm look like that tests bring, and who serves them?"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from invocations.decide.profiles import give_kept_files
from invocations.sandbox.base import BoxKey, Profile
from sandbox.image import image_name
from tests.support.http_server import serve_requests
from tests.support.mcp_servers import PINNED, PROTOCOL
from tests.support.sandboxes import call_of
from unitools.brought_npm import NpmSource
from unitools.brought_tools import draft_tools
from unitools.mcp_listings import LISTING_FILE, Listing
from unitools.npm_locks import NpmPackage
from unitools.publications import derive_package_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from invocations.sandbox.base import Limits, RunEvent, RunOutcome
    from invocations.sandbox.docker import DockerSandbox

NAME, VERSION = "@a/server", "1.0.0"
START = {"script": "a-server"}
STARTED = START | {"package": f"npm:{NAME}"}  # as a box is told
OPEN = {"type": "object"}

# `call(name, given, params)` gives a result, or nothing; `TOOLS` is what is listed.
_LOOP = """
import readline from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const text = (said, more = {}) => ({ content: [{ type: "text", text: String(said) }], ...more });
const BEGUN = Date.now();
process.stderr.write("A server begins.\\n");
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  let result;
  if (method === "initialize")
    result = { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: "a", version: "1" } };
  else if (method === "ping") result = ping({ ...params, id });
  else if (method === "tools/list") result = list(params);
  else if (method === "tools/call") result = await call(params.name, params.arguments, { ...params, id });
  if (result !== undefined) send({ id, result });
}
"""
HONEST = """
import fs from "node:fs";
import { spawnSync } from "node:child_process";
let calls = 0;
async function call(name, given, params) {
  calls += 1;
  switch (name) {
    case "Echo-Text": return text("x", { structuredContent: { text: given.text } });
    case "say": return text(given.text);
    case "fail": return text("There is no such city.", { isError: true });
    case "count": {
      const kept = fs.existsSync("/w/kept");
      fs.writeFileSync("/w/kept", "");
      return text(`${calls} ${kept} ${process.cwd()}`);
    }
    case "waited": return text(Date.now() - BEGUN);
    case "environment": return text(JSON.stringify([process.env.KEY, process.env.ZONE, process.argv.slice(2)]));
    case "draw": return { content: [{ type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" }] };
    case "hang": process.stderr.write("I hang\\n"); return undefined;
    case "progress":
      for (const done of [1, 2])
        send({ method: "notifications/progress", params: { progressToken: params._meta.progressToken, progress: done, total: 4 } });
      return text("done");
    case "reach":
      return fetch("https://203.0.113.7/").then(() => text("reached"), (error) => text(error.name, { isError: true }));
    case "run": return text(spawnSync(given.program).error.code);
  }
}
"""
ECHO: dict[str, Any] = {
    "name": "Echo-Text",
    "description": "Gives the text back.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "outputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "annotations": {"readOnlyHint": True},
}
TOOLS: list[dict[str, Any]] = [
    ECHO,
    *(
        {"name": name, "inputSchema": OPEN}
        for name in ("say", "fail", "count", "waited", "environment", "draw", "hang", "progress", "reach", "run")
    ),
]


def source_of(
    code: str = HONEST,
    tools: Sequence[dict[str, Any]] = TOOLS,
    *,
    lists: str = "() => ({ tools: TOOLS })",
    pings: str = "() => ({})",
) -> str:
    """The module of a server: what is common to all, and ``code``."""
    return f"const TOOLS = {json.dumps(list(tools))};\nconst list = {lists};\nconst ping = {pings};\n{code}\n{_LOOP}"


def about_of(name: str = NAME, version: str = VERSION, **more: Any) -> bytes:
    return json.dumps({"name": name, "version": version} | more).encode()


def pack_files(files: Iterable[tuple[str | tarfile.TarInfo, bytes]]) -> bytes:
    """A package's file, as npm makes them."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for entry, content in files:
            info = tarfile.TarInfo(entry) if isinstance(entry, str) else entry
            if info.isreg():
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def pack_package(name: str = NAME, version: str = VERSION, files: dict[str, str] | None = None, **about: Any) -> bytes:
    inside = {"package.json": about_of(name, version, **about)} | {
        path: text.encode() for path, text in (files or {}).items()
    }
    return pack_files((f"package/{path}", content) for path, content in inside.items())


def pack_server(source: str | None = None, **about: Any) -> bytes:
    files = {"server.mjs": source_of() if source is None else source}
    return pack_package(files=files, **({"bin": {"a-server": "server.mjs"}} | about))


def zip_bytes(size: int) -> bytes:
    return gzip.compress(bytes(size))


def integrity_of(packed: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()


def line_of(packed: bytes, name: str = NAME, version: str = VERSION, place: str = "", **more: Any) -> str:
    return NpmPackage(place or f"node_modules/{name}", name, version, integrity_of(packed), **more).line


@contextmanager
def serve_registry(
    files: dict[str, bytes], before: Callable[[], object] = lambda: None
) -> Iterator[tuple[str, list[str]]]:
    """A registry of these files by their paths: its address, and what it is asked for. ``before`` each answer something happens."""
    asked: list[str] = []

    class Registry(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            before()
            content = files.get(unquote(self.path))
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *_: Any) -> None:
            pass

    with serve_requests(Registry) as port:
        yield f"http://127.0.0.1:{port}", asked


def path_of(name: str = NAME, version: str = VERSION) -> str:
    return f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"


def listing_of(tools: Sequence[dict[str, Any]] = TOOLS) -> Listing:
    return Listing.from_json({"protocol": PROTOCOL, "tools": list(tools)})


def draft_of(*names: str, lock: Sequence[str], **start: Any) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """Manifests of these tools and the files of their package, as `unitools bring` writes them."""
    listing = listing_of()
    source = NpmSource(NAME, VERSION, "mcp.a", START | start, tuple(lock))
    drafts = draft_tools(listing, source, names)
    return [each.document for each in drafts], {
        f"{derive_package_name(source.group)}/{LISTING_FILE}": listing.to_bytes()
    }


def lay_out_server(folder: Path, source: str | None = None) -> Path:
    """As the hub's builder would lay it out, for a box."""
    place = folder / "node_modules" / NAME
    place.mkdir(parents=True)
    (place / "package.json").write_bytes(about_of(bin={"a-server": "server.mjs"}))
    (place / "server.mjs").write_text(source_of() if source is None else source)
    return folder


def ask_server(
    sandbox: DockerSandbox,
    folder: Path,
    tool: str,
    *,
    limits: Limits,
    structured: bool = False,
    start: dict[str, Any] | None = None,
    tenant: str = "tenant",
    level: str = "fresh",
    events: list[RunEvent] | None = None,
    given: dict[str, Any] | None = None,
    keeps: bool = False,
    **arguments: Any,
) -> RunOutcome:
    """One call of a server that was laid out in the folder, in a box; without a ``tool`` its list."""
    start = start or STARTED
    call = replace(
        call_of(PINNED, **arguments),
        dependencies=folder,
        key=BoxKey(tenant, json.dumps(start), dependencies=str(folder)),
        server=start,
        asks={"tool": tool, "structured": structured} if tool else {},
        image=image_name(kind="node"),
        **(given or {}),
    )
    profile = give_kept_files(Profile(limits, isolation=level), (20, 4 << 20) if keeps else None)
    return sandbox.run(profile, call, None if events is None else events.append)
