"""An embedded hub with the tenant of the conformance suite, serving, and the agent that may call its tools."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import UNPAIRED, Embedded
from tests.e2e.processes import ROOT, python, run
from tests.mcp_conformance.issuer import issuing
from tests.support.document_host import document_host
from tests.support.migrated_databases import FILE, copy_migrated_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.document_host import DocumentHost


SETTINGS = {
    "TOOLHUB_OUTBOUND_NETWORKS": "127.0.0.0/8",
    "TOOLHUB_RATE_REGISTRATIONS": "0",
}  # all clients are of one address


@dataclass(frozen=True, slots=True)
class Served:
    """``address``: host and port. ``agent`` and ``key`` are the OAuth client and its secret, too."""

    hub: Embedded
    issuer: str
    documents: DocumentHost
    agent: str
    key: str
    operates: str  # a key that may pause and resume tools
    password: str  # of conformance-operator
    client_id: str  # of the program that was entered by hand, and its secret
    client_secret: str

    @property
    def address(self) -> str:
        return self.hub.env["TOOLHUB_BIND"]

    @property
    def url(self) -> str:
        return f"http://{self.address}/mcp"

    def count_connections(self, client_id: str, *, kind: str) -> int:
        which = f"client_id = '{client_id}' AND client_kind = '{kind}'"
        return self.hub.count(f"SELECT count(*) FROM access_connection WHERE {which}")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Shared: do not break it."""
    tools = os.pathsep.join([str(ROOT / "tools"), str(ROOT / "tests" / "tools")])
    data = tmp_path_factory.mktemp("mcp") / "hub"
    with issuing() as issuer, document_host(tmp_path_factory.mktemp("documents")) as documents:
        sign_in = {"TOOLHUB_OIDC_ISSUER": issuer, "TOOLHUB_OIDC_CLIENT_ID": "hub", "TOOLHUB_OIDC_CLIENT_SECRET": "s"}
        hub = Embedded.at(data, TOOLHUB_TOOLS_PATH=tools, **SETTINGS, **sign_in, **documents.settings)
        copy_migrated_sqlite(data / FILE)
        said = run(python("-m", "tests.mcp_conformance.arrange", f"{issuer}/jwks"), hub.env, within_s=300)
        found = json.loads(said.splitlines()[-1])
        with hub.served():
            yield Served(hub, issuer, documents, **found)
    assert hub.count(f"{UNPAIRED} AND call.state <> 'held'") == 0  # nobody decides on what waits for a consent here
