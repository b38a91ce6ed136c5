"""Assets: do browsers get static files as they are, and only the part that they lack?"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.asgi_application import application

if TYPE_CHECKING:
    from collections.abc import Mapping

CSS = Path(__file__).resolve().parents[3] / "static" / "ui" / "app.css"


def asked(method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Of the application that web servers run. A warning is an error here."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": "/static/ui/app.css",
        "query_string": b"",
        "headers": [(b"host", b"localhost")]
        + [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
    }
    sent: list[Mapping[str, Any]] = []

    async def ask() -> None:
        waiting = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in waiting:
                return message
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: Mapping[str, Any]) -> None:
            sent.append(message)

        await application(scope, receive, send)

    asyncio.run(ask())
    answered = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], answered, b"".join(message.get("body", b"") for message in sent[1:])


def test_a_file_is_answered_whole_without_a_warning() -> None:
    status, headers, body = asked()

    assert (status, body) == (200, CSS.read_bytes())
    assert headers["content-type"] == 'text/css; charset="utf-8"'
    assert headers["content-length"] == str(len(body))
    assert headers["cache-control"] == "max-age=300, public"


def test_a_part_of_a_file_is_answered_alone() -> None:
    status, headers, body = asked(range="bytes=10-19")

    assert (status, body) == (206, CSS.read_bytes()[10:20])
    assert headers["content-range"].startswith("bytes 10-19/")


def test_who_asks_for_the_headers_only_or_has_the_file_gets_no_bytes() -> None:
    status, headers, body = asked("HEAD")
    assert (status, headers["content-length"], body) == (200, str(CSS.stat().st_size), b"")

    status, again, body = asked(if_none_match=headers["etag"])
    assert (status, again["etag"], body) == (304, headers["etag"], b"")
