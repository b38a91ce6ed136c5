"""Connections in tests: a program that registers, asks, is let in by a person with a browser, and gets its tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from django.test import Client

from access.connections.token_texts import compute_token_digest
from access.models import Connection, ConnectionToken
from kernel.database.connections import database_time

if TYPE_CHECKING:
    from access.models import Agent
    from tests.conftest import Person

REDIRECT = "https://client.example/callback"
VERIFIER = "v" * 64
MCP = "http://127.0.0.1:8000/mcp"
_places = count(random.getrandbits(20))
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def compute_challenge(verifier: str = VERIFIER) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def register(**metadata: Any) -> Any:
    usual = {"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none", "client_name": "Test client"}
    n = next(_places)  # not from one address, which registers ten times an hour
    place: Any = {"REMOTE_ADDR": f"10.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}"}
    return Client().post("/oauth/register", json.dumps(usual | metadata), content_type="application/json", **place)


@dataclass
class Program:
    """A program that has registered. ``asks``: what its authorization request says."""

    client_id: str
    redirect_uri: str = REDIRECT
    asks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def registered(cls, **metadata: Any) -> Program:
        answer = register(**metadata)
        assert answer.status_code == 201, answer.content
        return cls(answer.json()["client_id"], answer.json()["redirect_uris"][0])

    def address(self, **more: Any) -> str:
        said = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "code_challenge": compute_challenge(),
            "code_challenge_method": "S256",
            "state": "state-1",
        }
        said |= self.asks | more
        return "/oauth/authorize?" + urlencode(
            {name: each for name, each in said.items() if each is not None}, doseq=True
        )

    def open_page(self, browser: Client, **more: Any) -> Any:
        return browser.get(self.address(**more))

    def fetch_token(self, **form: Any) -> Any:
        return Client().post("/oauth/token", {"client_id": self.client_id} | form)

    def exchange(self, code: str, **form: Any) -> Any:
        usual = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return self.fetch_token(**usual | {"redirect_uri": self.redirect_uri} | form)

    def refresh(self, token: str, **form: Any) -> Any:
        return self.fetch_token(grant_type="refresh_token", refresh_token=token, **form)

    def connect(self, person: Person, agent: Any, *, asks: dict[str, Any] | None = None, **form: Any) -> dict[str, Any]:
        """The tokens after the person has allowed it."""
        answer = allow(person.client(), self, agent, asks=asks, **form)
        assert answer.status_code == 303, answer.content.decode()[-3000:]
        got = self.exchange(read_answer(answer)["code"])
        assert got.status_code == 200, got.content
        return dict(got.json())


def signed_request(page: Any) -> str:
    found = re.search(r'name="request" value="([^"]+)"', page.content.decode())
    assert found, page.content.decode()[-3000:]
    return found[1]


def read_shown(page: Any) -> str:
    """The agent whose tools are on the page; empty: the person may connect to none."""
    found = re.search(r'name="shown" value="([^"]+)"', page.content.decode())
    return found[1] if found else ""


def allow(browser: Client, program: Program, agent: Any, *, asks: dict[str, Any] | None = None, **form: Any) -> Any:
    page = program.open_page(browser, **(asks or {}))
    assert page.status_code == 200, (page.status_code, page.content.decode()[-2000:])
    scopes = re.findall(r'name="scopes" value="([^"]+)"', page.content.decode())
    usual = {"agent": agent.wire_id, "reach": "all", "scopes": scopes, "days": "30"}
    if read_shown(page) not in ("", agent.wire_id):
        page = browser.post("/oauth/authorize", {"request": signed_request(page), "decision": "look"} | usual)
    decided = {"request": signed_request(page), "shown": read_shown(page), "decision": "allow"}
    return browser.post("/oauth/authorize", decided | usual | form)


def read_answer(answer: Any) -> dict[str, str]:
    """What the redirect says."""
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["Location"]).query).items()}


def build_connection(*, agent: Agent, member: Any, name: str) -> Connection:
    """Not saved. ``name``: of the program."""
    now = database_time()
    return Connection(
        tenant_id=agent.tenant_id,
        agent=agent,
        member=member,
        client_id=f"client-of-{name}",
        client_kind=Connection.ClientKind.REGISTERED,
        client_name=name,
        client_digest="sha256:" + "0" * 64,
        redirect_host=f"{name}.example.org",
        resource=MCP,
        scopes=["tools:read"],
        code_digest=compute_token_digest(f"code of {name}"),
        form_digest=compute_token_digest(f"form of {name}"),
        opened_at=now,
        redeemed_at=now,
        until=now + timedelta(days=30),
    )


def make_connection(*, agent: Agent, member: Any, name: str) -> Connection:
    """One that is there, without the way to it."""
    connection = build_connection(agent=agent, member=member, name=name)
    connection.save(force_insert=True)
    ConnectionToken.objects.create(
        connection=connection,
        kind=ConnectionToken.TokenKind.ACCESS,
        digest=compute_token_digest(f"token of {name}"),
        expires_at=connection.opened_at + timedelta(hours=1),
    )
    return connection
