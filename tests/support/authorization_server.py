"""An authorization server on this machine, as MCP has them: it hands out codes and tokens to whoever asks rightly, and keeps count.

It checks what it is for servers to check: PKCE, the redirect URI, the resource (RFC 8707), that a code and a rotating refresh token
are good for once, and who the client is. Beside it, at ``/mcp``, stands a resource that asks for its tokens. A test
says who is signed in there, and what it does wrong.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.support.http_server import QuietHandler, serve_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LASTS_S = 3600


@dataclass(slots=True)
class Issued:
    """What a token stands for. ``family``: of the tokens that came of one code."""

    user: str
    client: str
    resource: str
    scope: str
    family: str
    ends: float = 0.0


@dataclass(slots=True)
class AuthorizationServer:
    """``user``: who is signed in in the browser. ``wrong``: what is answered at a path in place of what should be."""

    url: str = ""
    user: str = "alice"
    lasts_s: float = LASTS_S
    rotates: bool = True
    refreshes: bool = True  # whether it gives refresh tokens
    says_issuer: bool = True
    registers: bool = True
    takes_documents: bool = False
    needs_secret: bool = False
    needs_resource: bool = True  # else it refuses whoever names one, as some do
    resources: set[str] = field(default_factory=set)
    metadata: dict[str, Any] = field(default_factory=dict)  # in place of what it says of itself
    registration: dict[str, Any] = field(default_factory=dict)  # what it says beside the id and the secret
    clients: dict[str, str] = field(default_factory=dict)  # and their secrets
    redirect_uris: dict[str, list[str]] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    access: dict[str, Issued] = field(default_factory=dict)
    refresh: dict[str, Issued] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # path and form
    wrong: dict[str, tuple[int, dict[str, str], Any]] = field(default_factory=dict)
    before_token: Callable[[], object] = lambda: None
    before_registration: Callable[[], object] = lambda: None
    lock: Any = field(default_factory=threading.RLock)

    @property
    def resource(self) -> str:
        return f"{self.url}/mcp"

    def find_user(self, token: str) -> str | None:
        """Whose token it is, while it is good."""
        with self.lock:
            found = self.access.get(token)
            return found.user if found and found.ends > time.time() else None

    def count(self, path: str, **form: str) -> int:
        return sum(each == path and form.items() <= said.items() for each, said in self.asked)

    def forget(self, user: str) -> None:
        """Nobody has any token of this user any more."""
        with self.lock:
            for kept in (self.access, self.refresh):
                for token in [each for each, issued in kept.items() if issued.user == user]:
                    del kept[token]

    def let_run_out(self) -> None:
        with self.lock:
            for each in self.access.values():
                each.ends = 0.0

    def describe(self) -> dict[str, Any]:
        said: dict[str, Any] = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "revocation_endpoint": f"{self.url}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic"] if self.needs_secret else ["none"],
            "authorization_response_iss_parameter_supported": self.says_issuer,
            "client_id_metadata_document_supported": self.takes_documents,
        }
        if self.registers:
            said["registration_endpoint"] = f"{self.url}/register"
        return said | self.metadata

    def describe_resource(self, resource: str) -> dict[str, Any]:
        return {"resource": resource, "authorization_servers": [self.url], "scopes_supported": ["notes:read"]}

    def add_client(self, redirect_uri: str, *, secret: str = "") -> str:
        client = f"client-{secrets.token_hex(4)}"
        self.clients[client], self.redirect_uris[client] = secret, [redirect_uri]
        return client

    def give_token(self, user: str) -> str:
        """Somebody has one by another way."""
        issued = Issued(user, "elsewhere", "", "", secrets.token_hex(4))
        return str(self._issue(issued)["access_token"])

    # What it does.

    def authorize(self, asked: dict[str, str]) -> str:
        """The address that the browser is sent to, with a code for who is signed in."""
        client, redirect = asked.get("client_id", ""), asked.get("redirect_uri", "")
        known = self.redirect_uris.get(client) or ([redirect] if self.takes_documents else [])
        assert redirect in known, f"{redirect} is not a redirect URI of {client!r}"
        assert asked.get("code_challenge_method") == "S256"
        assert asked.get("response_type") == "code"
        code = secrets.token_urlsafe(16)
        with self.lock:
            self.codes[code] = asked | {"user": self.user}
        answer = {"code": code, "state": asked["state"]} | ({"iss": self.url} if self.says_issuer else {})
        return f"{redirect}?{urlencode(answer)}"

    def give_tokens(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        client = self._find_client(form, authorization)
        if client is None:
            return 401, {"error": "invalid_client"}
        kind = form.get("grant_type")
        if kind == "authorization_code":
            return self._redeem(form, client)
        if kind == "refresh_token":
            return self._renew(form, client)
        return 400, {"error": "unsupported_grant_type"}

    def _find_client(self, form: dict[str, str], authorization: str) -> str | None:
        client, secret = form.get("client_id", ""), form.get("client_secret", "")
        if authorization.startswith("Basic "):
            client, _, secret = base64.b64decode(authorization[6:]).decode().partition(":")
        if client not in self.clients:
            return client if self.takes_documents and client.startswith("https://") else None
        return client if self.clients[client] == secret else None

    def _redeem(self, form: dict[str, str], client: str) -> tuple[int, dict[str, Any]]:
        with self.lock:
            asked = self.codes.pop(form.get("code", ""), None)
        if asked is None or asked["client_id"] != client or asked["redirect_uri"] != form.get("redirect_uri"):
            return 400, {"error": "invalid_grant"}
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        resource = form.get("resource", "")
        is_known = resource in self.resources if self.needs_resource else not resource
        if resource != asked.get("resource", "") or not is_known:
            return 400, {"error": "invalid_target"}
        issued = Issued(asked["user"], client, resource, asked.get("scope", ""), secrets.token_hex(4))
        return 200, self._issue(issued)

    def _renew(self, form: dict[str, str], client: str) -> tuple[int, dict[str, Any]]:
        token = form.get("refresh_token", "")
        with self.lock:
            if token in self.used:  # somebody else has it, too: all that came of the code ends
                family = next((each.family for each in self.refresh.values() if token in self.used), "")
                self.refresh = {each: kept for each, kept in self.refresh.items() if kept.family != family}
                return 400, {"error": "invalid_grant"}
            issued = self.refresh.get(token)
            if issued is None or issued.client != client or form.get("resource", "") != issued.resource:
                return 400, {"error": "invalid_grant"}
            if self.rotates:
                self.used.add(token)
                del self.refresh[token]
            return 200, self._issue(issued)

    def _issue(self, issued: Issued) -> dict[str, Any]:
        access, refresh = f"at-{secrets.token_urlsafe(24)}", f"rt-{secrets.token_urlsafe(24)}"
        with self.lock:
            kept = Issued(issued.user, issued.client, issued.resource, issued.scope, issued.family)
            kept.ends = time.time() + self.lasts_s
            self.access[access] = kept
            said: dict[str, Any] = {"access_token": access, "token_type": "Bearer", "expires_in": int(self.lasts_s)}
            is_first = not any(each.family == issued.family for each in self.refresh.values())
            if self.refreshes and (self.rotates or is_first):
                self.refresh[refresh] = issued
                said["refresh_token"] = refresh
        return said | ({"scope": issued.scope} if issued.scope else {})

    def revoke(self, token: str) -> None:
        with self.lock:
            self.access.pop(token, None)
            self.refresh.pop(token, None)


@contextmanager
def serving_authorization(**options: Any) -> Iterator[AuthorizationServer]:
    """Until the block ends."""
    server = AuthorizationServer(**options)

    class Handler(QuietHandler):
        def answer(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.write_answer(status, content, {"Content-Type": "application/json"} | (headers or {}))

        def respond(self) -> None:
            path, body = urlsplit(self.path).path, self.read_body().decode()
            form = {name: values[0] for name, values in parse_qs(body).items()} if "=" in body else {}
            server.asked.append((path, form))
            if path in server.wrong:
                status, headers, document = server.wrong[path]
                self.answer(status, document, headers)
            elif path in ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
                self.answer(200, server.describe())
            elif path == "/.well-known/oauth-protected-resource/mcp":
                self.answer(200, server.describe_resource(server.resource))
            elif path == "/mcp":
                known = f'Bearer resource_metadata="{server.url}/.well-known/oauth-protected-resource/mcp"'
                self.answer(401, {}, {"WWW-Authenticate": known})
            elif path == "/authorize":
                asked = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
                self.answer(302, {}, {"Location": server.authorize(asked)})
            elif path == "/register" and server.registers:
                server.before_registration()
                said = json.loads(body)
                secret = secrets.token_urlsafe(12) if server.needs_secret else ""
                client = server.add_client(said["redirect_uris"][0], secret=secret)
                self.answer(
                    201,
                    said | server.registration | {"client_id": client} | ({"client_secret": secret} if secret else {}),
                )
            elif path == "/token":
                server.before_token()
                status, document = server.give_tokens(form, self.headers.get("Authorization", ""))
                self.answer(status, document)
            elif path == "/revoke":
                server.revoke(form.get("token", ""))
                self.answer(200, {})
            else:
                self.answer(404, {})

        do_GET = do_POST = respond  # noqa: N815  as http.server calls them

    with serve_requests(Handler) as port:
        server.url = f"http://127.0.0.1:{port}"
        server.resources.add(server.resource)
        yield server
