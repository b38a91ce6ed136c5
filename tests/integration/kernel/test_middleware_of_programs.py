"""Middleware of programs: does who shows a key pass what is about browsers, and get what everybody gets?"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.sessions.middleware import SessionMiddleware
from django.db import connections

from kernel.http.deferred_responses import Handler

if TYPE_CHECKING:
    from tests.conftest import Caller

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses for which a session was looked for."""
    found: list[str] = []
    former = SessionMiddleware.process_request

    def process_request(self: SessionMiddleware, request: Any) -> None:
        found.append(request.path)
        former(self, request)

    monkeypatch.setattr(SessionMiddleware, "process_request", process_request)
    return found


def ask(address: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    async def story() -> tuple[int, dict[str, str], Any]:
        given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        scope = {
            "type": "http",
            "method": "GET",
            "path": address,
            "query_string": b"",
            "headers": [(b"host", b"testserver"), *given],
        }
        asked: Any = ApplicationCommunicator(Handler(1), scope)  # type: ignore[no-untyped-call]
        await asked.send_input({"type": "http.request", "body": b"", "more_body": False})
        start, body = await asked.receive_output(20), await asked.receive_output(20)
        await sync_to_async(connections.close_all)()
        said = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        return start["status"], said, json.loads(body["body"])

    return asyncio.run(story())


@pytest.mark.parametrize("address", ["/api/v1/tools", "/v1/models", "/api/v1/nothing"])
def test_a_key_without_a_session_gets_what_it_gets_with_one(address: str, caller: Caller, sessions: list[str]) -> None:
    key = f"Bearer {caller.key}"

    status, headers, body = ask(address, authorization=key)
    assert sessions == []
    usual = ask(address, authorization=key, cookie="theme=dark")

    assert sessions == [address]
    own = {"request_id"}
    assert (status, {name: said for name, said in body.items() if name not in own}) == (
        usual[0],
        {name: said for name, said in usual[2].items() if name not in own},
    )
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-request-id"]
    assert headers["content-length"] == usual[1]["content-length"]


@pytest.mark.parametrize("said", [{}, {"cookie": "sessionid=x"}])
def test_who_shows_no_key_is_looked_at_as_a_browser_is(said: dict[str, str], sessions: list[str]) -> None:
    status, _, _ = ask("/api/v1/tools", **said)

    assert status == 401
    assert sessions == ["/api/v1/tools"]


def test_what_a_program_passes_is_a_part_of_what_all_pass_in_the_same_order() -> None:
    mine = set(settings.MIDDLEWARE_OF_PROGRAMS)

    assert [each for each in settings.MIDDLEWARE if each in mine] == settings.MIDDLEWARE_OF_PROGRAMS
