"""Authorization by the official suite: what does the conformance suite of MCP say about the hub as an authorization server?

The suite is a program that is known in one of the ways of the hub, and a person signs in and lets it in. What it may find is in
``expected/authorization.yml``, each with the reason.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import httpx2
import pytest
import yaml

from tests.mcp_conformance import scripted_browser
from tests.mcp_conformance.suite import EXPECTED, failures, judge_authorization

if TYPE_CHECKING:
    from pathlib import Path

    from tests.mcp_conformance.conftest import Served

ANY_PORT = "http://127.0.0.1/callback"
EVERY_CHECK = {
    "authorization-server-metadata-endpoint:authorization-server-metadata",
    "authorization-server-metadata-endpoint:authorization-server-metadata-cimd",
    "authorization-code-grant:authorization-code-grant",
}


def identify(known: str, served: Served) -> dict[str, str]:
    """What the suite is to the hub, as its options."""
    if known == "document":
        return {"client-id": served.documents.build_id("the-suite")}
    if known == "entered":
        return {"client-id": served.client_id, "client-secret": served.client_secret}
    asked = {"client_name": "The suite", "redirect_uris": [ANY_PORT], "token_endpoint_auth_method": "none"}
    answer = httpx2.post(f"http://{served.address}/oauth/register", json=asked, trust_env=False, timeout=60)
    assert answer.status_code == 201, answer.text
    return {"client-id": answer.json()["client_id"]}


@pytest.mark.req("CONN-2")
@pytest.mark.parametrize("known", ["document", "registered", "entered"])
def test_the_official_suite_finds_nothing_in_the_hub_as_an_authorization_server(
    known: str, served: Served, tmp_path: Path
) -> None:
    program = identify(known, served) | {"resource": served.url}
    let_in = partial(scripted_browser.main, served.agent, served.password)

    verdict = judge_authorization(f"http://{served.address}", program, let_in, tmp_path)

    expected = set(yaml.safe_load((EXPECTED / "authorization.yml").read_text())[known])
    assert {check.name for check in failures(verdict.checks)} == expected, verdict.said
    assert {check.name for check in verdict.checks if check.status == "SUCCESS"} == EVERY_CHECK - expected, verdict.said
    assert verdict.accepted == (not expected), verdict.said
