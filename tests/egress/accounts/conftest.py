"""A tool that asks its server as the person whom a call is for: the server, who gives tokens for it, and two persons."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client

from access.connections.resources import hub_resource
from access.roles import Role
from kernel.http import outbound
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from registry.tools import lifecycle
from tests.conftest import Caller, Person, make_person
from tests.egress.recorded_boxes import RecordedBoxes
from tests.egress.remote_servers import RemoteServer, serving_remote
from tests.egress.world import HOST
from tests.support.authorization_server import AuthorizationServer, serving_authorization
from tests.support.calls import run_calls_here, run_calls_in
from tests.support.connections import Program
from tests.support.policies_in_force import permit, put_in_force
from unitools.brought_remotes import RemoteSource
from unitools.brought_tools import draft_tools
from unitools.capsules import pack_capsule
from unitools.command.remote_servers import list_tools
from unitools.mcp_http import MODERN
from unitools.mcp_listings import LISTING_FILE, Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from access.models import Tenant
    from invocations.sandbox.docker import DockerSandbox
    from tests.egress.world import Authority

TOOL = "mcp.shop.read_notes"


@pytest.fixture(autouse=True)
def boxes(sandbox: DockerSandbox, monkeypatch: pytest.MonkeyPatch, settings: Any) -> RecordedBoxes:
    """Calls run in boxes, in the thread of who waits for them."""
    found = RecordedBoxes(sandbox)
    run_calls_in(found, monkeypatch)
    run_calls_here(monkeypatch, settings)
    return found


@pytest.fixture
def accounts(settings: Any) -> Iterator[AuthorizationServer]:
    settings.TOOLHUB_SERVER_ACCOUNT_NETWORKS = ["127.0.0.0/8"]
    with serving_authorization() as found:
        yield found


@pytest.fixture
def remote(
    authority: Authority, accounts: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RemoteServer]:
    """The hub believes the authority, and finds the server's name on this machine, as the gate does."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.roots))
    outbound._build_tls.cache_clear()
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *more, **named: real("127.0.0.1" if host == HOST else host, *more, **named)
    )
    with serving_remote(authority.server_context(HOST, "localhost"), host=HOST, accounts=accounts) as found:
        accounts.resources.add(found.resource)
        yield found
    outbound._build_tls.cache_clear()


@pytest.fixture
def bring(
    remote: RemoteServer,
    accounts: AuthorizationServer,
    caller: Caller,
    operator: Person,
    grant: Callable[..., Any],
) -> Callable[..., ToolVersion]:
    """``bring()``: a tool that asks its server as the person whom a call is for, ready to be called."""

    def make(*, scopes: tuple[str, ...] = ("notes:read",), **changes: Any) -> ToolVersion:
        put_in_force(permit())
        url = f"https://localhost:{remote.port}/mcp"
        author = accounts.give_token("author")
        listing = list_tools(url, [("Authorization", f"Bearer {author}")])
        remote.heard.clear()
        source = RemoteSource(remote.resource, "mcp.shop", MODERN, account={"scopes": list(scopes)})
        (draft,) = draft_tools(Listing(MODERN, listing.tools), source, ["read-notes"])
        document = draft.document | {"side_effect": "Read", "safety_class": "Low"} | changes
        capsule = pack_capsule([document], {f"mcp_shop/{LISTING_FILE}": listing.to_bytes()})
        answer = Client().post(
            "/api/v1/capsules", capsule.data, content_type="application/zip", headers=caller.headers()
        )
        assert answer.status_code == 201, answer.json()
        version = ToolVersion.objects.get(capsule__digest=capsule.digest)
        reviews.review_version(version_id=version.pk, decision=Decision.APPROVE, note="", by=operator.by)
        lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="x", by=operator.by)
        grant(tools="mcp.*")
        return version

    return make


@pytest.fixture
def alice(tenant: Tenant) -> Person:
    return make_person(tenant, "alice", Role.OPERATOR)


@pytest.fixture
def bob(tenant: Tenant) -> Person:
    return make_person(tenant, "bob", Role.OPERATOR)


def connect(
    person: Person, url: str, accounts: AuthorizationServer, *, user: str = "", agents: tuple[str, ...] = ()
) -> None:
    """As the person does it in a browser, from the address that a caller was told."""
    browser = person.client()
    page = urlsplit(url).path
    assert browser.get(page).status_code == 200
    gone = browser.post(f"{page}/connect", {"agents": list(agents)})
    assert gone.status_code == 200, gone.content.decode()[-3000:]
    accounts.user = user or person.user.username
    back = urlsplit(accounts.authorize(dict(parse_qsl(urlsplit(gone.context["address"]).query))))
    assert browser.get(f"{back.path}?{back.query}").status_code == 302


class ProgramOfPerson:
    """A program that the person has let act as the agent."""

    def __init__(self, person: Person, agent: Any) -> None:
        tokens = Program.registered().connect(person, agent, asks={"resource": hub_resource()})
        self.headers = {"Authorization": f"Bearer {tokens['access_token']}"}

    def __call__(self, tool: str, **envelope: Any) -> Any:
        body = {"request_id": "request-1", "actor": {"type": "agent", "id": "x"}, "arguments": {}} | envelope
        path = f"/api/v1/tools/{tool}/invoke"
        return Client().post(path, body, content_type="application/json", headers=self.headers)


program_of = ProgramOfPerson
