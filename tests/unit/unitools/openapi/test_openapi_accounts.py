"""Accounts of services: does a document say who gives a person's tokens, and is what it does not say refused with what to do?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.openapi_documents import make, of_parameters
from unitools.changes import compare_manifests
from unitools.checks import check_manifest
from unitools.openapi.account_security import AccountChoice
from unitools.openapi.documents import DocumentUnfit

AUTHORIZE, TOKEN = "https://auth.example.org/authorize", "https://auth.example.org/token"
OPENID = "https://auth.example.org/tenant/.well-known/openid-configuration"
FLOW = {"authorizationUrl": AUTHORIZE, "tokenUrl": TOKEN, "scopes": {"items:read": "Reads."}}
BY_CODE = {"type": "oauth2", "flows": {"authorizationCode": FLOW}}
STATED = {"authorization_url": AUTHORIZE, "token_url": TOKEN}


def of_schemes(security: Any, **schemes: Any) -> dict[str, Any]:
    return of_parameters(security=security) | {"components": {"securitySchemes": schemes}}


def operation_of(said: dict[str, Any], scheme: str = "") -> dict[str, Any]:
    made, _ = make(said, account=AccountChoice(scheme))
    assert [each for each in check_manifest(made) if each.severity == "error"] == []
    assert "secrets" not in made
    found: dict[str, Any] = made["implementation"]["operation"]
    assert "credentials" not in found
    return found


@pytest.mark.req("BRING-1", "BRING-3")
@pytest.mark.parametrize(
    ("scheme", "account"),
    [
        (BY_CODE, STATED),
        ({"type": "openIdConnect", "openIdConnectUrl": OPENID}, {"openid_url": OPENID}),
        ({"type": "oauth2", "flow": "accessCode", "authorizationUrl": AUTHORIZE, "tokenUrl": TOKEN}, STATED),
    ],
    ids=["oauth2", "openIdConnect", "swagger"],
)
def test_a_scheme_in_which_a_person_agrees_becomes_their_account(
    scheme: dict[str, Any], account: dict[str, str]
) -> None:
    said = of_schemes([{"person": ["items:read"]}], person=scheme)

    assert operation_of(said)["account"] == account | {"scopes": ["items:read"]}


@pytest.mark.req("BRING-1", "BRING-3")
@pytest.mark.parametrize(
    ("security", "scheme", "says"),
    [
        ([{"person": []}], {"type": "apiKey", "in": "header", "name": "X-Key"}, "no authorization code flow"),
        ([{"person": []}], {"type": "oauth2", "flows": {"implicit": FLOW}}, "no authorization code flow"),
        ([{"person": []}], {"type": "oauth2", "flow": "password", "tokenUrl": TOKEN}, "no authorization code flow"),
        ([{"person": []}], {"type": "openIdConnect", "openIdConnectUrl": "https://a.example.org/x"}, "openid url"),
        (
            [{"person": []}],
            {"type": "oauth2", "flows": {"authorizationCode": FLOW | {"tokenUrl": "http://a.example.org/t"}}},
            "token url",
        ),
        (
            [{"person": []}],
            {"type": "oauth2", "flows": {"authorizationCode": FLOW | {"authorizationUrl": "/authorize"}}},
            "authorization url",
        ),
        ([{"person": [], "other": []}], BY_CODE, "no scheme in which a person agrees"),
        ([{"missing": []}], BY_CODE, "no authorization code flow"),
        ([{"person": ["two words"]}], BY_CODE, "scopes"),
    ],
)
def test_a_service_that_cannot_be_asked_as_a_person_is_refused_with_what_to_do(
    security: Any, scheme: dict[str, Any], says: str
) -> None:
    with pytest.raises(DocumentUnfit, match=says) as refused:
        operation_of(of_schemes(security, person=scheme))

    assert refused.value.pointer.endswith("/security")
    assert refused.value.remedy


def test_the_scheme_that_is_named_is_taken() -> None:
    other = BY_CODE | {"flows": {"authorizationCode": FLOW | {"tokenUrl": "https://other.example.org/token"}}}
    said = of_schemes([{"first": []}, {"second": []}], first=BY_CODE, second=other)

    assert operation_of(said)["account"]["token_url"] == TOKEN
    assert operation_of(said, "second")["account"]["token_url"] == "https://other.example.org/token"
    with pytest.raises(DocumentUnfit, match="no scheme in which a person agrees"):
        operation_of(said, "third")


@pytest.mark.req("BRING-1", "BRING-3")
def test_a_key_beside_the_account_is_nobodys_argument() -> None:
    key = {"name": "X-Api-Key", "in": "header", "required": True, "schema": {"type": "string"}}
    said = of_parameters(key, security=[{"person": []}]) | {"components": {"securitySchemes": {"person": BY_CODE}}}

    made, notes = make(said, account=AccountChoice())

    assert made["input_schema"].get("properties", {}) == {}
    assert "credentials" not in made["implementation"]["operation"]
    assert any("X-Api-Key" in each.message for each in notes)


def test_an_operation_that_anybody_may_ask_asks_for_nobody() -> None:
    assert "account" not in operation_of(of_schemes([], person=BY_CODE))


@pytest.mark.req("BRING-1")
def test_another_who_gives_tokens_is_another_reach() -> None:
    old, _ = make(of_schemes([{"person": []}], person=BY_CODE), account=AccountChoice())
    moved = BY_CODE | {"flows": {"authorizationCode": FLOW | {"tokenUrl": "https://evil.example.org/token"}}}
    new, _ = make(of_schemes([{"person": []}], person=moved), account=AccountChoice())

    kinds = {each.kind for each in compare_manifests(old, new)}

    assert "operation.reach_changed" in kinds
