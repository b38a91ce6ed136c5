"""Our client: it speaks with the server whose address it is given last, as a call of a tool of a remote server does.

It lists the tools, and calls each once with the arguments that its schema asks for. The conversation
is the sandbox's, and what is sent is what the gate writes of it; only that the gate speaks TLS, which the suite's servers do not.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from http.client import HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from invocations.sandbox.egress import RemoteWay
from invocations.sandbox.egress.request_head import RequestHead, RequestTarget
from sandbox.mcp_results import ask_tool
from unitools.mcp_argument_headers import MarkUnfit, find_argument_headers
from unitools.mcp_conversation import ServerUnfit
from unitools.mcp_http import MODERN, HttpAnswer, HttpConversation
from unitools.mcp_listings import Listing
from unitools.runtime import DomainError

if TYPE_CHECKING:
    from collections.abc import Iterator

WITHIN_S = 60
VALUES = {"string": "a", "number": 1, "integer": 1, "boolean": True, "object": {}, "array": []}


class Server:
    """One of the suite's. ``way``: how the gate writes what is sent to it; None: as `unitools bring remote` says it by itself."""

    def __init__(self, url: str, way: RemoteWay | None = None) -> None:
        parts = urlsplit(url)
        self.target, self.path = RequestTarget(parts.hostname or "", parts.port or 80), parts.path or "/"
        self.way = way

    def ask(self, method: str, headers: list[tuple[str, str]], body: bytes) -> HttpAnswer:
        said = tuple((name.encode(), value.encode()) for name, value in headers)
        request = RequestHead(method, self.target, self.path.encode(), said, len(body))
        head = request.head()
        if self.way is not None:
            self.way.check(request)
            question = self.way.read_question(request, body)
            body = body if question.body is None else question.body
            head = self.way.head(request, length=len(body), more=question.headers)
        connection = socket.create_connection((self.target.host, self.target.port), timeout=WITHIN_S)
        connection.sendall(head + body)
        answer = HTTPResponse(connection, method=method)
        answer.begin()
        told = {name.lower(): value for name, value in answer.getheaders()}
        return HttpAnswer(answer.status, told, read(answer), connection.close)


def build_way(url: str, revision: str, tool: str, schema: Any) -> RemoteWay:
    parts = urlsplit(url)
    remote = {"url": f"https://{parts.netloc}{parts.path or '/'}", "revision": revision}
    asks = {"tool": tool, "headers": find_argument_headers(schema) if revision >= MODERN else []}
    return RemoteWay.build_for(remote, asks, {})


def read(answer: HTTPResponse) -> Iterator[bytes]:
    while piece := answer.read1(1 << 16):
        yield piece


def tell(*said: object) -> None:
    print(*said, file=sys.stderr)


def converse(server: Server, revision: str) -> HttpConversation:
    return HttpConversation(server.ask, revision=revision, log=tell, note=tell, progress=tell)


def list_tools(url: str, revision: str) -> Listing:
    talk = converse(Server(url), revision if revision >= MODERN else "")
    try:
        talk.begin()
        return Listing.from_json({"protocol": talk.revision, "tools": talk.list_tools()})
    finally:
        talk.end()


def make_arguments(name: str, schema: dict[str, Any], context: dict[str, Any], listing: Listing) -> dict[str, Any]:
    """Those that the suite names, else what the schema asks for: of a tool that wants a schema, the one of its neighbour."""
    named = [each["arguments"] for each in context.get("toolCalls", []) if each["name"] == name]
    if named:
        return dict(named[0])
    if name == "json_schema_echo":
        return {"schema": listing.tools["json_schema_2020_12_tool"]["inputSchema"]}
    properties = schema.get("properties", {})
    return {each: VALUES[properties[each].get("type", "string")] for each in schema.get("required", [])}


def main(url: str, revision: str, context: dict[str, Any]) -> None:
    listing = list_tools(url, revision)
    for name, entry in listing.tools.items():
        schema = entry["inputSchema"]
        try:
            server = Server(url, build_way(url, listing.protocol, name, schema))
        except MarkUnfit as error:  # `unitools bring remote` does not bring it
            tell(f"{name} is not brought: {error}")
            continue
        talk = converse(server, listing.protocol)
        try:
            talk.begin()
            tell(ask_tool(talk, {"name": name, "arguments": make_arguments(name, schema, context, listing)}))
        except (DomainError, ServerUnfit) as error:
            tell(f"{name}: {error}")
        finally:
            talk.end()


if __name__ == "__main__":
    main(
        sys.argv[-1],
        os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")),
    )
