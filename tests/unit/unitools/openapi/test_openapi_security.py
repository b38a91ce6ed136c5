"""Servers and credentials of operations: is exactly one frozen, and is whoever asks said by the gate alone?"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.openapi_documents import (
    make,
    of_parameters,
)
from unitools.openapi.documents import DocumentUnfit
from unitools.openapi.security import CredentialChoice
from unitools.openapi.servers import normalize_server


def many_addresses(scheme: str) -> dict[str, Any]:
    variables = {name: {"enum": [f"{name}{number}" for number in range(40)]} for name in "rv"}
    return {"url": f"{scheme}://{{r}}.example.org/{{v}}", "variables": variables}


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("servers", "named", "found"),
    [
        ([{"url": "https://API.example.org:443/v1/"}], (), "https://api.example.org/v1"),
        (
            [{"url": "https://a.example.org"}, {"url": "https://b.example.org"}],
            ("https://b.example.org/",),
            "https://b.example.org",
        ),
        ([{"url": "/api"}], ("https://own.example.org",), "https://own.example.org/api"),
        ([{"url": "//kubernetes.local"}], ("https://k8s.example.org:6443",), "https://k8s.example.org:6443"),
        ([{"url": "http://a.example.org"}], ("https://a.example.org",), "https://a.example.org"),
        ([], ("https://a.example.org",), "https://a.example.org"),
        (
            [
                {
                    "url": "https://{r}.example.org/{v}",
                    "variables": {"r": {"enum": ["eu", "us"]}, "v": {"default": "v1"}},
                }
            ],
            ("https://us.example.org/v1",),
            "https://us.example.org/v1",
        ),
        ([many_addresses("https")], ("https://R7.example.org/v8",), "https://r7.example.org/v8"),
    ],
)
def test_exactly_one_server_is_frozen(servers: list[dict[str, Any]], named: tuple[str, ...], found: str) -> None:
    said = of_parameters() | {"servers": servers}

    assert make(said, servers=named)[0]["implementation"]["operation"]["server"] == found


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("servers", "named"),
    [
        ([{"url": "https://a.example.org"}, {"url": "https://b.example.org"}], ()),
        ([{"url": "https://a.example.org"}], ("https://evil.example.org", "https://worse.example.org")),
        ([{"url": "https://{r}.example.org", "variables": {"r": {"default": "eu"}}}], ()),
        ([{"url": "https://{r}.example.org", "variables": {"r": {"default": "eu"}}}], ("https://own.example.org",)),
        ([{"url": "https://{r}.example.org", "variables": {"r": {"enum": ["evil.net/x#"]}}}], ()),
        ([{"url": "https://{r}.example.org", "variables": {"r": {"default": "a@evil.net:1/"}}}], ()),
        ([{"url": "http://a.example.org"}], ()),
        ([{"url": "/"}], ()),
        ([{"url": "https://10.0.0.1"}], ()),
        ([{"url": "https://u:p@a.example.org"}], ()),
        ([{"url": "https://a.example.org/../x"}], ()),
        ([], ("http://a.example.org",)),
        ([], ("https://127.1",)),
        ([], ()),
        ([many_addresses("https")], ()),
        ([many_addresses("https")], ("https://r7.example.org/v100",)),
        ([many_addresses("https"), many_addresses("http")], ("https://r100.example.org/v8",)),
        ([many_addresses("https"), {"url": "https://a.example.org"}], ("https://b.example.org",)),
        ([{"url": "https://a.example.org"}] * 1_001, ("https://a.example.org",)),
        (
            [{"url": "https://a.example.org/" + "a" * 2_000}, {"url": "https://b.example.org"}],
            ("https://b.example.org",),
        ),
        ([{"url": "https://a.example.org/{v}", "variables": {"v": {"default": "a" * 2_001}}}], ()),
        ([{"url": "https://a.example.org/" + "".join(f"{{v{n}}}" for n in range(21))}], ("https://a.example.org",)),
        (
            [{"url": "https://a.example.org/{v}", "variables": {"v": {"enum": ["a"] * 10_001}}}],
            ("https://a.example.org/a",),
        ),
    ],
)
def test_a_server_that_nobody_could_mean_is_refused(servers: list[dict[str, Any]], named: tuple[str, ...]) -> None:
    with pytest.raises(DocumentUnfit) as caught:
        make(of_parameters() | {"servers": servers}, servers=named)
    assert caught.value.remedy


@pytest.mark.attack
@pytest.mark.req("BRING-1", "SVC-6")
def test_an_address_without_end_is_not_taken_apart() -> None:
    """What urlsplit has seen stays in a cache of the process."""
    with pytest.raises(ValueError, match="more than 2,000 characters"):
        normalize_server("https://a.example.org/" + "a" * 1_000_000)


@pytest.mark.req("BRING-1")
def test_an_operation_with_a_server_of_its_own_goes_there() -> None:
    said = of_parameters(servers=[{"url": "https://uploads.example.org"}])

    made, _ = make(said, servers=("https://api.example.org/v1",))

    assert made["implementation"]["operation"]["server"] == "https://uploads.example.org"
    assert made["capabilities"] == {"net": [{"host": "uploads.example.org", "methods": ["GET"]}]}


def secured(security: Any, **schemes: Any) -> dict[str, Any]:
    return of_parameters(security=security) | {"components": {"securitySchemes": schemes}}


BEARER, BASIC = {"type": "http", "scheme": "Bearer"}, {"type": "http", "scheme": "basic"}


@pytest.mark.req("BRING-1")
def test_credentials_are_those_of_the_security_schemes() -> None:
    keys = {name: {"type": "apiKey", "in": "header", "name": f"X-{name}"} for name in ("One", "Two")}

    made, _ = make(secured([{"One": [], "Two": []}], **keys), prefix="SHOP")

    assert made["implementation"]["operation"]["credentials"] == [
        {"secret": f"SHOP_{name.upper()}", "in": "header", "name": f"X-{name}", "scheme": "plain"}
        for name in ("One", "Two")
    ]
    assert [(each["name"], each["hosts"]) for each in made["secrets"]] == [
        ("SHOP_ONE", ["api.example.org"]),
        ("SHOP_TWO", ["api.example.org"]),
    ]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("security", "named", "scheme", "required"),
    [
        ([{"basic": []}, {"bearer": []}], "", "bearer", True),
        ([{"basic": []}, {"bearer": []}], "MINE=basic", "basic", True),
        ([{"bearer": []}, {}], "", "bearer", False),
        ([{"digest": []}, {"basic": []}], "", "basic", True),
        ([{"open": []}], "MINE", "bearer", True),
    ],
)
def test_of_several_ways_one_is_taken(security: Any, named: str, scheme: str, required: bool) -> None:
    said = secured(
        security,
        basic=BASIC,
        bearer=BEARER,
        digest={"type": "http", "scheme": "digest"},
        open={"type": "openIdConnect"},
    )
    name, _, how = named.partition("=")

    made, _ = make(said, secrets=(CredentialChoice(name, how),) if named else ())

    assert [each["scheme"] for each in made["implementation"]["operation"]["credentials"]] == [scheme]
    assert made["secrets"][0].get("required", True) is required
    if named:
        assert made["secrets"][0]["name"] == "MINE"


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    "scheme",
    [
        {"type": "mutualTLS"},
        {"type": "http", "scheme": "digest"},
        {"type": "apiKey", "in": "header", "name": "Host"},
        {"type": "apiKey", "in": "body", "name": "a"},
    ],
)
def test_a_way_that_the_gate_does_not_know_is_refused_with_a_remedy(scheme: dict[str, Any]) -> None:
    said = secured([{"odd": []}], odd=scheme)

    with pytest.raises(DocumentUnfit, match="cannot say who is asking by odd"):
        make(said)
    made, _ = make(said, secrets=(CredentialChoice("KEY", "header:X-Key"),))
    assert made["implementation"]["operation"]["credentials"][0]["name"] == "X-Key"
    with pytest.raises(DocumentUnfit, match="no way to send it"):
        make(said, secrets=(CredentialChoice("KEY", "header:Content-Length"),))


@pytest.mark.req("BRING-1")
def test_a_document_without_schemes_has_no_credential_until_a_person_names_one() -> None:
    assert "secrets" not in make(of_parameters())[0]
    made, _ = make(of_parameters(), secrets=(CredentialChoice("GITHUB_TOKEN"),))
    assert made["implementation"]["operation"]["credentials"] == [
        {"secret": "GITHUB_TOKEN", "in": "header", "name": "Authorization", "scheme": "bearer"}
    ]


# Effects, answers, texts.
