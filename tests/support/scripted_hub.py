"""Scripted hub: a server on this machine that answers each request with the next of what was written down, and both clients for it."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.http_server import Heard, QuietHandler, serve_requests
from unitools.hub import AsyncHubClient, HubClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEY = "hub_a-key-that-nobody-may-see"
DROP = "close the connection without an answer"
ID = "inv_1"


@dataclass
class Scripted:
    """A server on this machine that answers each request with the next of what was written down."""

    script: list[Any]
    url: str = ""
    heard: list[Heard] = field(default_factory=list)


@contextmanager
def scripted(*script: Any) -> Iterator[Scripted]:
    said = Scripted(list(script))

    class Handler(QuietHandler):
        def _answer(self) -> None:
            body = self.read_body()
            names = {name.lower(): value for name, value in self.headers.items()}
            said.heard.append(Heard(self.command, self.path, names, body))
            answer = said.script.pop(0)
            if answer == DROP:
                self.close_connection = True
                return
            status, headers, content = answer
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.write_answer(status, text, headers)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815  names of the library

    with serve_requests(Handler) as port:
        said.url = f"http://127.0.0.1:{port}"
        yield said


def envelope(data: Any = None, **call: Any) -> dict[str, Any]:
    return {"ok": True, "data": data, "warnings": [], "error": None, "call": {"call_id": ID, "status": "ok"} | call}


def refusal(reason: str, retryable: str) -> dict[str, Any]:
    error = {"code": "RATE_LIMITED", "reason": reason, "message": "Later.", "retryable": retryable}
    return envelope() | {"ok": False, "error": error}


def blocking(url: str, ask: Callable[[Any], Any]) -> Any:
    with HubClient(url, KEY) as hub:
        return ask(hub)


def waiting(url: str, ask: Callable[[Any], Any]) -> Any:
    async def main() -> Any:
        async with AsyncHubClient(url, KEY) as hub:
            return await ask(hub)

    return asyncio.run(main())


both = pytest.mark.parametrize("using", [blocking, waiting])
