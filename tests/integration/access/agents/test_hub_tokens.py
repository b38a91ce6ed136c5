"""Hub tokens: which tokens does the hub itself give for a key, and when do they end?"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client
from joserfc import jwt
from joserfc.jwk import OctKey

from access.agents import services as agents
from access.models import ApiKey
from tests.conftest import make_caller
from tests.support.tokens import ask, encoded

if TYPE_CHECKING:
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db


def get_token(caller: Caller, **form: str) -> Any:
    usual = {"grant_type": "client_credentials", "client_id": caller.agent.wire_id, "client_secret": caller.key}
    return Client().post("/api/v1/oauth/token", usual | form)


@pytest.mark.req("TOOLS-15")
def test_a_key_is_exchanged_for_a_token_that_ends_with_the_key(caller: Caller, operator: Person) -> None:
    answer = get_token(caller, scope="tools:read")
    body = answer.json()

    assert (answer.status_code, body["token_type"], body["expires_in"]) == (200, "Bearer", 600)
    assert answer.headers["Cache-Control"] == "no-store"
    assert ask(body["access_token"]).status_code == 200
    assert ask(body["access_token"], "/api/v1/grants").status_code == 403
    agents.revoke_key(key_id=ApiKey.objects.get().pk, by=operator.by)
    assert ask(body["access_token"]).status_code == 401
    assert get_token(caller).json()["error"] == "invalid_client"


@pytest.mark.req("TOOLS-15")
def test_a_token_ends_with_its_agent(caller: Caller, operator: Person) -> None:
    token = get_token(caller).json()["access_token"]

    agents.disable_agent(agent_id=caller.agent.pk, reason="test", by=operator.by)

    assert ask(token).status_code == 401


@pytest.mark.req("TOOLS-15")
def test_a_client_may_use_basic_authentication(caller: Caller) -> None:
    basic = base64.b64encode(f"{caller.agent.wire_id}:{caller.key}".encode()).decode()

    answer = Client().post(
        "/api/v1/oauth/token", {"grant_type": "client_credentials"}, headers={"Authorization": f"Basic {basic}"}
    )

    assert answer.status_code == 200


@pytest.mark.req("TOOLS-15")
@pytest.mark.parametrize(
    ("form", "error", "status"),
    [
        ({"grant_type": "password"}, "unsupported_grant_type", 400),
        ({"client_secret": "hub_live_x"}, "invalid_client", 401),
        ({"client_id": "agt_somebody"}, "invalid_client", 401),
        ({"scope": "everything"}, "invalid_scope", 400),
    ],
)
def test_the_token_endpoint_refuses_in_its_own_words(
    form: dict[str, str], error: str, status: int, caller: Caller
) -> None:
    answer = get_token(caller, **form)

    assert (answer.status_code, answer.json()["error"]) == (status, error)


@pytest.mark.req("TOOLS-15")
def test_a_scope_that_the_key_does_not_carry_is_not_given(operator: Person) -> None:
    reader = make_caller(operator.by, "reader", scopes=("tools:read",))

    assert get_token(reader, scope="invocations:create").json()["error"] == "invalid_scope"
    assert get_token(reader).json()["scope"] == "tools:read"


@pytest.mark.req("TOOLS-15")
def test_a_token_that_the_hub_did_not_sign_is_not_its_own(caller: Caller) -> None:
    real = get_token(caller).json()["access_token"]
    header, claims, signature = real.split(".")
    forged = jwt.encode(
        {"alg": "HS256", "typ": "at+jwt", "kid": "k1"},
        json.loads(base64.urlsafe_b64decode(claims + "==")),
        OctKey.generate_key(256),
        algorithms=["HS256"],
    )

    for text in (forged, f"{header}.{claims}.", f"{encoded({'alg': 'none'}, {})[:-1]}.{claims}.{signature}"):
        assert ask(text).status_code == 401
