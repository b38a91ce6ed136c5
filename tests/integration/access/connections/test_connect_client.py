"""Page "Connect a client": what does it give to whom, and does it say when something has connected?"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from access.connections.client_guides import describe_clients
from tests.support.connections import MCP, Program

if TYPE_CHECKING:
    from django.test import Client

    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db

WAITS = "Nothing has connected since you opened this page."


def look(browser: Client, since: str) -> Any:
    """As HTMX asks for the line again."""
    asked: Any = {"HX-Request": "true", "HX-Target": "arrival"}
    return browser.get("/connections/connect", {"since": since}, headers=asked)


@pytest.mark.req("CONN-1")
def test_cursor_and_vs_code_are_opened_with_the_address_filled_in(operator: Person) -> None:
    links = {client["name"]: client["link"] for client in describe_clients(MCP) if "link" in client}
    page = operator.client().get("/connections/connect").content.decode()

    config = parse_qs(urlsplit(links["Cursor"]).query)["config"][0]
    assert json.loads(base64.b64decode(config)) == {"url": MCP}
    said = json.loads(unquote(links["VS Code"].removeprefix("vscode:mcp/install?")))
    assert said == {"name": "toolhub", "type": "http", "url": MCP}
    for link in links.values():
        assert link.replace("&", "&amp;") in page


@pytest.mark.req("CONN-1")
def test_the_page_says_when_a_program_has_connected_and_asks_no_longer(operator: Person, caller: Caller) -> None:
    browser = operator.client()
    Program.registered().connect(operator, caller.agent)
    since = browser.get("/connections/connect").context["since"]

    waiting = look(browser, since)
    Program.registered(redirect_uris=["https://other.example/cb"]).connect(operator, caller.agent)
    arrived = look(browser, since).content.decode()

    assert since.startswith("con_")
    assert WAITS in waiting.content.decode()
    assert f'hx-get="/connections/connect?since={since}"' in waiting.content.decode()
    assert "<bdi>other.example</bdi> is connected and acts as" in arrived
    assert "hx-get" not in arrived
    assert "<html" not in arrived


@pytest.mark.req("CONN-1")
def test_what_others_connect_or_what_has_no_tokens_yet_is_not_told(
    operator: Person, second_operator: Person, caller: Caller
) -> None:
    browser = operator.client()
    since = browser.get("/connections/connect").context["since"]

    Program.registered().connect(second_operator, caller.agent)

    assert since == ""
    assert WAITS in look(browser, since).content.decode()
    assert WAITS in look(browser, "con_nonsense").content.decode()
