"""Clients by URL: do clients of others get to work when a person pastes the address of /mcp and signs in, and no more?"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.extensions.identity_assertion import IdentityAssertionOAuthProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    JWT_BEARER_GRANT_TYPE,
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
)

from tests.e2e.wire import request
from tests.mcp_conformance.arrange import NAMED, REDIRECT_URI
from tests.mcp_conformance.issuer import EXCHANGE, ID_JAG, SECRET
from tests.mcp_conformance.scripted_browser import let_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.shared.auth import OAuthToken

    from tests.mcp_conformance.conftest import Served


GREET = f"{NAMED}greet"
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


class Storage:
    """What a client keeps of its tokens."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def greeted(url: str, auth: Any) -> Any:
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        assert GREET in [each.name for each in (await client.list_tools()).tools]
        return (await client.call_tool(GREET, {"name": "you"})).structured_content


def sign_in_at_the_provider(address: str) -> dict[str, str]:
    """With the session that a person has there already."""
    answer = httpx2.get(address, trust_env=False, timeout=60)
    assert answer.status_code == 302, answer.text
    return dict(parse_qsl(urlsplit(answer.headers["Location"]).query))


def build_provider(
    served: Served,
    redirect_uri: str,
    sign_in: Callable[[str], dict[str, str]] | None = None,
    path: str = "",
    *,
    entered: bool = False,
    document: str | None = None,
) -> OAuthClientProvider:
    """Of a client that was given the address of /mcp with ``path``; and the id and secret of one that was ``entered`` by hand.
    ``sign_in``: what a person does in the browser. ``document``: where the client says what it is.
    """
    went: list[str] = []

    async def open_browser(address: str) -> None:
        went.append(address)

    async def await_answer() -> AuthorizationCodeResult:
        do = sign_in or partial(let_in, agent=served.agent, password=served.password)
        said = await asyncio.to_thread(do, went[-1])
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said["iss"])

    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "A client",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
    )
    storage = Storage()
    if entered:
        storage.client = OAuthClientInformationFull.model_validate(
            metadata.model_dump()
            | {"client_id": served.client_id, "client_secret": served.client_secret}
            | {"token_endpoint_auth_method": "client_secret_basic"}
        )
    return OAuthClientProvider(
        served.url + path, metadata, storage, open_browser, await_answer, client_metadata_url=document
    )


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize(
    "redirect_uri",
    [
        "http://127.0.0.1:53219/callback",
        "http://localhost:3030/callback",
        "cursor://anysphere.cursor-mcp/oauth/callback",
    ],
)
def test_the_official_client_needs_nothing_but_the_address(redirect_uri: str, served: Served) -> None:
    provider = build_provider(served, redirect_uri)

    assert asyncio.run(greeted(served.url, provider)) == {"text": "Hello, you!"}


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_official_client_names_itself_by_its_document(host: str, served: Served) -> None:
    client_id = served.documents.build_id(f"python-{host}")
    provider = build_provider(served, f"http://{host}:53219/callback", document=client_id)

    assert asyncio.run(greeted(served.url, provider)) == {"text": "Hello, you!"}
    assert provider.context.client_info is not None
    assert provider.context.client_info.client_id == client_id  # it has not registered itself
    assert urlsplit(client_id).path in served.documents.heard
    assert served.count_connections(client_id, kind="document") == 1


@pytest.mark.req("CONN-1")
def test_the_official_client_comes_with_an_id_and_a_secret_that_were_entered_by_hand(served: Served) -> None:
    provider = build_provider(served, REDIRECT_URI, entered=True)

    assert asyncio.run(greeted(served.url, provider)) == {"text": "Hello, you!"}
    assert provider.context.client_info is not None
    assert provider.context.client_info.client_id == served.client_id  # it has not registered itself


@pytest.mark.req("CONN-2")
def test_the_official_client_signs_in_at_the_tenants_own_provider(served: Served) -> None:
    provider = build_provider(served, "http://127.0.0.1:53219/callback", sign_in_at_the_provider, "/conformance")

    assert asyncio.run(greeted(f"{served.url}/conformance", provider)) == {"text": "Hello, you!"}
    (tokens,) = [provider.context.current_tokens]
    assert tokens is not None
    assert tokens.scope == "openid profile email"
    elsewhere = request("POST", served.url, LIST, ACCEPT | {"Authorization": f"Bearer {tokens.access_token}"})
    assert elsewhere.status == 401


@pytest.mark.req("CONN-1")
def test_the_official_client_gets_a_newer_token_without_the_person(served: Served) -> None:
    provider = build_provider(served, "http://127.0.0.1:53219/callback")
    asyncio.run(greeted(served.url, provider))
    first = provider.context.current_tokens
    assert first is not None
    provider.context.token_expiry_time = 1.0  # as if its hour were over
    provider.context.redirect_handler = None

    assert asyncio.run(greeted(served.url, provider)) == {"text": "Hello, you!"}
    second = provider.context.current_tokens
    assert second is not None
    assert second.access_token != first.access_token


@pytest.mark.req("SVC-1")
def test_the_official_client_uses_the_key_of_an_agent(served: Served) -> None:
    provider = ClientCredentialsOAuthProvider(
        served.url,
        Storage(),
        client_id=served.agent,
        client_secret=served.key,
        issuer=served.url.removesuffix("/mcp"),
    )

    assert asyncio.run(greeted(served.url, provider)) == {"text": "Hello, you!"}


def ask_for_assertion(served: Served, audience: str, resource: str) -> str:
    """What the identity provider says of the person, for whom the program holds what they signed in with."""
    form = {
        "grant_type": EXCHANGE,
        "requested_token_type": ID_JAG,
        "audience": audience,
        "resource": resource,
        "client_id": served.client_id,
        "client_secret": SECRET,
    }
    answer = httpx2.post(f"{served.issuer}/token", data=form, trust_env=False, timeout=60)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


@pytest.mark.req("CONN-1")
def test_the_official_client_comes_by_what_the_identity_provider_says_of_the_person(served: Served) -> None:
    hub, storage, shown = served.url.removesuffix("/mcp"), Storage(), []

    async def fetch(audience: str, resource: str) -> str:
        shown.append(await asyncio.to_thread(ask_for_assertion, served, audience, resource))
        return shown[-1]

    provider = IdentityAssertionOAuthProvider(
        server_url=served.url,
        storage=storage,
        client_id=served.client_id,
        client_secret=served.client_secret,
        issuer=hub,
        assertion_provider=fetch,
    )

    assert asyncio.run(greeted(served.url, provider)) == {"text": "Hello, you!"}
    assert storage.tokens is not None
    assert (storage.tokens.refresh_token, storage.tokens.expires_in, len(shown)) == (None, 300, 1)
    form = {"grant_type": JWT_BEARER_GRANT_TYPE, "assertion": shown[0]}
    who = (served.client_id, served.client_secret)
    again = httpx2.post(f"{hub}/oauth/token", data=form, auth=who, trust_env=False, timeout=60)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")


@pytest.mark.req("CONN-1")
def test_what_is_disconnected_is_refused_at_the_next_request(served: Served) -> None:
    provider = build_provider(served, "http://127.0.0.1:53219/callback")
    asyncio.run(greeted(served.url, provider))
    tokens = provider.context.current_tokens
    client = provider.context.client_info
    assert tokens is not None
    assert client is not None
    authorized = ACCEPT | {"Authorization": f"Bearer {tokens.access_token}"}
    assert request("POST", served.url, LIST, authorized).status == 200

    hub = served.url.removesuffix("/mcp")
    form = {"client_id": client.client_id, "token": tokens.access_token}
    assert httpx2.post(f"{hub}/oauth/revoke", data=form, trust_env=False, timeout=60).status_code == 200

    refused = request("POST", served.url, LIST, authorized)
    assert refused.status == 401
    assert re.search(
        r'resource_metadata="[^"]+/\.well-known/oauth-protected-resource/mcp"', refused.headers["www-authenticate"]
    )
