"""From a document to a governed tool: are operations of a service brought, packed, uploaded, reviewed and called in a whole hub?"""

from __future__ import annotations

import json
import socket
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.conftest import UNPAIRED, Embedded, copy_of
from tests.e2e.processes import python, run
from tests.egress.services import Service, answer_with, serving
from tests.egress.world import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.wire import Answer

HOST = "localhost"
TOKEN = "t0ken-of-the-demo-4711"
GET, MAKE = "acme.shop.get_item", "acme.shop.make_item"
ITEM = {"200": {"description": "", "content": {"application/json": {"schema": {"type": "object"}}}}}


def describe_shop(port: int) -> dict[str, Any]:
    name = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Shop", "version": "3"},
        "servers": [{"url": f"https://{HOST}:{port}/v1"}],
        "security": [{"token": []}],
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            "/items/{id}": {
                "get": {
                    "operationId": "get-item",
                    "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
                    "responses": ITEM,
                }
            },
            "/items": {
                "post": {
                    "operationId": "make-item",
                    "requestBody": {"required": True, "content": {"application/json": {"schema": name}}},
                    "responses": ITEM,
                }
            },
        },
    }


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def service(authority: Authority) -> Iterator[Service]:
    address = socket.gethostbyname(HOST)
    with serving(authority.server_context(HOST), address=address) as found:
        yield found


@pytest.fixture(scope="module")
def hub(
    prepared: Embedded, service: Service, authority: Authority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Embedded]:
    """A hub with both operations, brought on the command line, read and corrected, packed, uploaded, approved, enabled and granted."""
    folder = tmp_path_factory.mktemp("brought")
    (folder / "shop.json").write_text(json.dumps(describe_shop(service.port)))
    hub = copy_of(
        prepared,
        folder / "hub",
        TOOLHUB_SANDBOX_NETWORKS="127.0.0.0/8,::1/128",
        TOOLHUB_SANDBOX_CA_FILE=str(authority.roots),
    )
    shop = folder / "acme_shop"
    bring = ("-m", "unitools", "bring", "openapi", str(folder / "shop.json"), "--group", "acme.shop", "-o", str(shop))
    said = run(python(*bring, "--operation", "get-item", "--operation", "make-item", "--secret", "SHOP_TOKEN"), hub.env)
    assert "Read, GET https://localhost" in said
    made = shop / "manifests" / f"{MAKE}.json"
    # No consent is asked for, since nobody is here to give one.
    made.write_text(made.read_text().replace('"side_effect": "Write"', '"side_effect": "Network"'))
    run(python("-m", "unitools", "pack", str(shop), "-o", str(folder / "shop.capsule")), hub.env)
    key = run(python("-m", "tests.e2e.publishing", "author"), hub.env)
    with hub.served():
        _upload(hub, key, folder / "shop.capsule")
        run(python("-m", "tests.e2e.publishing", "review", TOKEN), hub.env)
        yield hub
        log = (hub.data / "serve.log").read_text()
    assert TOKEN not in log
    assert hub.count(UNPAIRED) == 0


def _upload(hub: Embedded, key: str, capsule: Path) -> None:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/octet-stream"}
    sent = urllib.request.Request(f"{hub.url}/api/v1/capsules", capsule.read_bytes(), headers)
    with urllib.request.urlopen(sent) as answer:
        assert answer.status in (200, 201)


@pytest.fixture
def answering(service: Service) -> Iterator[Service]:
    yield service
    service.heard.clear()
    service.hangs_up = ""


def _service_of(hub: Embedded, answer: Answer) -> dict[str, Any]:
    ended = next(each for each in hub.agent.facts(answer.call_id) if each["kind"] == "invocation.ended")
    found: dict[str, Any] = ended["data"]["service"]
    return found


@pytest.mark.req("BRING-1", "SVC-6")
def test_what_was_brought_is_asked_for_with_the_tenants_token(hub: Embedded, answering: Service) -> None:
    answering.answers = [answer_with(b'{"id": "a b"}', content_type="application/json")]

    answer = hub.agent.invoke(GET, {"id": "a b"})

    assert answer.status == 200, answer
    assert answer.json()["data"] == {"status": 200, "body": {"id": "a b"}}
    (heard,) = answering.requests()
    assert heard.startswith(b"GET /v1/items/a%20b HTTP/1.1\r\n")
    assert f"\r\nAuthorization: Bearer {TOKEN}\r\n".encode() in heard
    assert _service_of(hub, answer)["credentials"] == ["SHOP_TOKEN"]


@pytest.mark.req("BRING-1")
@pytest.mark.parametrize(
    ("status", "http", "reason", "retry_after"),
    [
        ("404 Not Found", 404, "DOMAIN.NOT_FOUND", None),
        ("429 Too Many Requests", 503, "SERVICE.BUSY", "7"),
        ("500 Internal Server Error", 502, "SERVICE.FAILED", None),
    ],
)
def test_what_a_service_refuses_is_told_as_it_says_it(
    status: str, http: int, reason: str, retry_after: str | None, hub: Embedded, answering: Service
) -> None:
    said = answer_with(b'{"why": "no"}', status=status, content_type="application/json", retry_after="7")
    answering.answers = [said]

    answer = hub.agent.invoke(MAKE, {"name": "x"})

    error = answer.json()["error"]
    assert (answer.status, error["reason"], error["details"]["body"]) == (http, reason, {"why": "no"})
    assert answer.headers.get("retry-after") == retry_after


@pytest.mark.req("BRING-1", "SVC-6")
def test_a_lost_answer_of_what_changes_something_is_unknown_and_asked_for_once(
    hub: Embedded, answering: Service
) -> None:
    answering.hangs_up = "head"

    answer = hub.agent.invoke(MAKE, {"name": "x"})

    assert answer.json()["error"]["reason"] == "SERVICE.ANSWER_LOST", answer
    assert len(answering.heard) == 1
    assert _service_of(hub, answer)["left"] is True
