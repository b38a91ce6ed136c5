"""Accounts over MCP: does a person's own client show them where to connect, and does the call go on then?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mcp_types import ElicitResult

from access.models import ServerAccount
from kernel.database.connections import release_connection
from tests.egress.accounts.conftest import TOOL, connect
from tests.support.calls import run_calls_here
from tests.support.connections import Program
from tests.support.mcp_clients import called, error_of, ring_in_threads, talk, web_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import ToolVersion
    from tests.conftest import Caller, Person
    from tests.support.authorization_server import AuthorizationServer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def url(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    ring_in_threads(run_calls_here(monkeypatch, settings), monkeypatch)
    with web_server(threads=2) as found:
        settings.TOOLHUB_PUBLIC_URL = found
        yield found


@pytest.mark.req("BRING-3")
def test_a_client_shows_its_user_where_to_connect_and_calls_again(
    url: str, bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person
) -> None:
    bring()
    token = Program.registered().connect(alice, caller.agent)["access_token"]
    shown: list[Any] = []

    async def ask(_: Any, params: Any) -> ElicitResult:
        shown.append(params)
        await asyncio.to_thread(link, params.url)
        return ElicitResult(action="accept")

    def link(page: str) -> None:
        try:
            connect(alice, page, accounts)
        finally:
            release_connection()

    result = talk(url, token, called(TOOL, {}), elicitation_callback=ask)

    assert result.structured_content == {"notes": ["note of alice"], "of": "alice"}
    ((asked,),) = (shown,)
    assert (asked.mode, asked.url.rpartition("/")[2]) == ("url", ServerAccount.objects.get().wire_id)
    assert "connect your account" in asked.message


def test_a_client_that_shows_nothing_tells_its_model_whom_to_show_what(
    url: str, bring: Callable[..., ToolVersion], accounts: AuthorizationServer, caller: Caller, alice: Person
) -> None:
    bring()
    token = Program.registered().connect(alice, caller.agent)["access_token"]

    error = error_of(talk(url, token, called(TOOL, {})))

    assert error["reason"] == "ACCOUNT.REQUIRED"
    assert error["details"]["url"].startswith(url)
