"""An operation, its way out and what a box asks for by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invocations.sandbox.egress import ServiceWay
from tests.egress.world import HOST, Client, rules, tls

if TYPE_CHECKING:
    from invocations.sandbox.egress import EgressDoor

TOKEN = "t0ken-of-the-tenant"
OPERATION: dict[str, Any] = {
    "method": "GET",
    "path": "/repos/{owner}/{repo}",
    "arguments": [
        {"argument": "owner", "in": "path", "name": "owner"},
        {"argument": "repo", "in": "path", "name": "repo"},
        {"argument": "trace", "in": "header", "name": "X-Trace"},
    ],
    "credentials": [{"secret": "TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}],
}


def way_to(port: int, secret: str = TOKEN, **changed: Any) -> ServiceWay:
    operation = OPERATION | {"server": f"https://{HOST}:{port}/v1"} | changed
    return ServiceWay.build(operation, {"TOKEN": secret}, {"TOKEN": [secret]})


def begin(door: EgressDoor, way: ServiceWay, **net: Any) -> None:
    door.begin(rules(net=[tls(way.host, way.port) | net]), way=way)


def request(port: int, path: str = "/v1/repos/octo/cat", *more: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} http://{HOST}:{port}{path} HTTP/1.1", *more]
    lines += [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body


def ask(door: EgressDoor, data: bytes) -> tuple[bytes, bytes]:
    """Head and body of what the gate gives back, until it hangs up."""
    with Client(door) as client:
        head, _, body = client.say(data).rest().partition(b"\r\n\r\n")
    return head, body
