"""OAuth: who knows only the address of /mcp: do they find out where tokens come from, and do tokens come in?"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.wire import request
from tests.mcp_conformance.arrange import NAMED, SUBJECT
from tests.mcp_conformance.issuer import SECRET

if TYPE_CHECKING:
    from tests.mcp_conformance.conftest import Served


GREET = f"{NAMED}greet"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def post(url: str, **form: str) -> str:
    """The token that a token endpoint gives."""
    answer = httpx2.post(url, data={"grant_type": "client_credentials"} | form, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


async def greeted(url: str, token: str) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        assert GREET in [each.name for each in (await client.list_tools()).tools]
        return (await client.call_tool(GREET, {"name": "you"})).structured_content


@pytest.mark.req("CONN-2", "TOOLS-15")
def test_the_challenge_leads_to_the_token_endpoint_of_the_hub_and_its_token_comes_in(served: Served) -> None:
    challenge = request("POST", served.url, LIST, ACCEPT).headers["www-authenticate"]
    found = re.search(r'resource_metadata="([^"]+)"', challenge)
    assert found, challenge
    (server,) = request("GET", found[1]).json()["authorization_servers"]
    metadata = request("GET", f"{server}/.well-known/oauth-authorization-server").json()

    token = post(metadata["token_endpoint"], client_id=served.agent, client_secret=served.key)

    assert token != served.key
    assert asyncio.run(greeted(served.url, token)) == {"text": "Hello, you!"}


@pytest.mark.req("CONN-2", "TOOLS-15")
def test_the_token_of_an_issuer_that_the_tenant_trusts_comes_in(served: Served) -> None:
    token = post(f"{served.issuer}/token", client_id=SUBJECT, client_secret=SECRET)

    assert asyncio.run(greeted(served.url, token)) == {"text": "Hello, you!"}


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize("authorization", ["", "Bearer nothing", "Bearer hub_live_" + "x" * 20, "Basic eDp5"])
def test_who_shows_nothing_that_counts_is_told_where_to_get_a_token(authorization: str, served: Served) -> None:
    headers = {"Authorization": authorization} if authorization else {}

    refused = request("POST", served.url, LIST, headers | ACCEPT)

    assert refused.status == 401, refused
    address = f"http://{served.address}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{address}"' in refused.headers["www-authenticate"]
    metadata = request("GET", address).json()
    assert metadata["resource"] == served.url
    assert metadata["authorization_servers"]
    assert metadata["bearer_methods_supported"] == ["header"]
