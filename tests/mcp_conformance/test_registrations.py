"""Registrations of programs: do those that cannot be run here come to a token by what they send?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import httpx2
import pytest

from tests.e2e.wire import request
from tests.mcp_conformance.registrations import ACCEPT, LIST, SEEN, VS_CODE_GRANTS, Registration, build_vs_code
from tests.mcp_conformance.scripted_browser import let_in
from tests.support.connections import VERIFIER, compute_challenge

if TYPE_CHECKING:
    from tests.mcp_conformance.conftest import Served


def register(served: Served, sent: Registration) -> dict[str, Any]:
    answer = httpx2.post(
        f"http://{served.address}/oauth/register",
        content=sent.write(),
        headers={"Content-Type": "application/json"},
        trust_env=False,
        timeout=60,
    )
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def assert_comes_in(served: Served, sent: Registration) -> None:
    """With each of its addresses; by its secret where it has asked for one."""
    hub, known = f"http://{served.address}", register(served, sent)
    who = {name: known[name] for name in ("client_id", "client_secret") if name in known}
    assert ("client_secret" in who) == (sent.body["token_endpoint_auth_method"] != "none")
    for redirect_uri in sent.body["redirect_uris"]:
        asked = {
            "response_type": "code",
            "client_id": known["client_id"],
            "redirect_uri": redirect_uri,
            "code_challenge": compute_challenge(),
            "code_challenge_method": "S256",
            "state": "s",
            "resource": served.url,
        } | ({"scope": sent.scope} if sent.scope else {})
        said = let_in(f"{hub}/oauth/authorize?{urlencode(asked)}", agent=served.agent, password=served.password)
        form = {
            "grant_type": "authorization_code",
            "code": said["code"],
            "redirect_uri": redirect_uri,
            "code_verifier": VERIFIER,
        }
        answer = httpx2.post(f"{hub}/oauth/token", data=form | who, trust_env=False, timeout=60)
        assert answer.status_code == 200, answer.text
        token = answer.json()["access_token"]
        listed = request("POST", served.url, LIST, ACCEPT | {"Authorization": f"Bearer {token}"})
        assert listed.status == 200, listed


@pytest.mark.req("CONN-1")
@pytest.mark.parametrize("sent", SEEN, ids=str)
def test_what_programs_were_seen_to_send_leads_to_a_token(sent: Registration, served: Served) -> None:
    assert_comes_in(served, sent)


@pytest.mark.req("CONN-1")
def test_what_vs_code_sends_by_its_source_leads_to_a_token(served: Served) -> None:
    sent = build_vs_code(served.url)

    assert sent.body["grant_types"] == list(VS_CODE_GRANTS[:2])  # the hub offers no codes for devices
    assert sent.write().startswith('{"client_name":"Visual Studio Code","client_uri":"https://code.visualstudio.com",')
    assert_comes_in(served, sent)
