"""Document attacks: is a host that answers one thing and is another, or answers too much, asked once and no more?"""

from __future__ import annotations

import json
import socket
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from django.core.cache import cache
from oauth2_provider.models import Application

from access.budgets.rate_limits import make_memory_store
from tests.support.connections import Program
from tests.support.document_host import describe, document_host

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import Person
    from tests.support.document_host import DocumentHost

pytestmark = pytest.mark.django_db
PUBLIC, METADATA = "93.184.215.14", "169.254.169.254"
HERE = "http://127.0.0.1/callback"


@pytest.fixture
def host(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[DocumentHost]:
    """The hub believes its certificate."""
    cache.clear()
    make_memory_store.cache_clear()
    with document_host(tmp_path) as found:
        context = ssl.create_default_context(cafile=found.settings["SSL_CERT_FILE"])
        monkeypatch.setattr("kernel.http.outbound._build_tls", lambda: context)
        yield found


@pytest.fixture
def connected(host: DocumentHost, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were connected to. The name is at a public address for who asks first, and at others afterwards; the host
    is behind each.
    """
    found: list[str] = []
    addresses = [PUBLIC, METADATA, "127.0.0.1"]
    name, port = urlsplit(host.url).hostname, urlsplit(host.url).port
    resolve, connect = socket.getaddrinfo, socket.create_connection

    def resolve_in_turn(asked: Any, *rest: Any, **named: Any) -> Any:
        if asked != name:
            return resolve(asked, *rest, **named)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (addresses.pop(0), port))]

    def connect_to_the_host(address: tuple[str, int], *rest: Any, **named: Any) -> socket.socket:
        if address[1] != port:
            return connect(address, *rest, **named)
        found.append(address[0])
        return connect(("127.0.0.1", port), *rest, **named)

    monkeypatch.setattr("kernel.http.outbound.socket.getaddrinfo", resolve_in_turn)
    monkeypatch.setattr("kernel.http.outbound.socket.create_connection", connect_to_the_host)
    return found


@pytest.mark.req("CONN-1")
def test_a_name_that_is_elsewhere_at_the_second_question_is_asked_where_it_was_first(
    host: DocumentHost, connected: list[str], operator: Person
) -> None:
    client_id = host.build_id("rebinding")

    page = Program(client_id, HERE).open_page(operator.client())

    assert page.status_code == 200
    assert connected == [PUBLIC]
    assert host.heard == [urlsplit(client_id).path]


@pytest.mark.req("CONN-1")
def test_a_document_that_sends_the_hub_elsewhere_is_not_followed(
    host: DocumentHost, connected: list[str], operator: Person
) -> None:
    client_id = host.build_id("redirecting")
    host.others[urlsplit(client_id).path] = (302, {"Location": f"http://{METADATA}/latest"}, b"")

    page = Program(client_id, HERE).open_page(operator.client())

    assert page.status_code == 400
    assert connected == [PUBLIC]
    assert not Application.objects.exists()


@pytest.mark.req("CONN-1")
def test_a_document_of_three_megabytes_is_not_read(host: DocumentHost, connected: list[str], operator: Person) -> None:
    client_id = host.build_id("large")
    document = json.dumps(describe(client_id) | {"padding": "x" * 3_000_000}).encode()
    host.others[urlsplit(client_id).path] = (200, {}, document)

    page = Program(client_id, HERE).open_page(operator.client())

    assert page.status_code == 400
    assert connected == [PUBLIC]
    assert not Application.objects.exists()
