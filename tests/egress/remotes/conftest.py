"""Remote servers in a hub: a server that is reached over TLS, and its tools, brought as anybody brings them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from registry.installations import services as installations
from registry.installations.services import Setup
from registry.models import Decision, ToolVersion
from registry.reviews import services as reviews
from registry.secrets import services as secrets
from registry.tools import lifecycle
from tests.egress.recorded_boxes import RecordedBoxes
from tests.egress.remote_servers import TOKEN, RemoteServer, serving_remote
from tests.egress.remotes.hub_tools import BEARER, list_of
from tests.egress.world import HOST
from tests.support.calls import run_calls_here, run_calls_in
from tests.support.policies_in_force import permit, put_in_force
from unitools.brought_remotes import RemoteSource
from unitools.brought_tools import draft_tools
from unitools.capsules import pack_capsule
from unitools.mcp_http import MODERN
from unitools.mcp_listings import LISTING_FILE, Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.base import Sandbox
    from tests.conftest import Caller, Person
    from tests.egress.world import Authority


@pytest.fixture(autouse=True)
def boxes(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, settings: Any) -> RecordedBoxes:
    """Calls run in boxes, in the thread of who waits for them."""
    found = RecordedBoxes(sandbox)
    run_calls_in(found, monkeypatch)
    run_calls_here(monkeypatch, settings)
    return found


@pytest.fixture
def remote(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteServer]:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.roots))
    with serving_remote(authority.server_context(HOST, "localhost")) as found:
        yield found


@pytest.fixture
def bring(
    remote: RemoteServer, caller: Caller, operator: Person, grant: Callable[..., Any]
) -> Callable[..., ToolVersion]:
    """``bring()``: drafted from what the server lists, packed, uploaded, reviewed, enabled, set up and granted."""

    def make(
        name: str = "Get-Item",
        *,
        revision: str = MODERN,
        listing: Listing | None = None,
        granted: bool = True,
        **changes: Any,
    ) -> ToolVersion:
        put_in_force(permit())
        listing = listing or list_of(remote)
        listing = Listing(revision, listing.tools)
        source = RemoteSource(f"https://{HOST}:{remote.port}/mcp", "mcp.shop", revision, BEARER)
        (draft,) = draft_tools(listing, source, [name])
        # What reads asks for no consent, so that the tests have none to give.
        document = draft.document | {"side_effect": "Read", "safety_class": "Low"} | changes
        capsule = pack_capsule([document], {f"mcp_shop/{LISTING_FILE}": listing.to_bytes()})
        answer = Client().post(
            "/api/v1/capsules", capsule.data, content_type="application/zip", headers=caller.headers()
        )
        assert answer.status_code == 201, answer.json()
        version = ToolVersion.objects.get(capsule__digest=capsule.digest)
        seen = [each["id"] for each in version.changes]
        reviews.review_version(
            version_id=version.pk, decision=Decision.APPROVE, note="", acknowledged=seen, by=operator.by
        )
        lifecycle.enable_tool(name=version.tool.name, version_id=version.pk, reason="x", by=operator.by)
        secrets.set_secret(name="token", value=TOKEN, by=operator.by)
        values = Setup(secrets={"SHOP_TOKEN": "token"})
        installations.configure_installation(name=version.tool.name, values=values, reason="x", by=operator.by)
        if granted:
            grant(tools="mcp.*")
        return version

    return make
