"""An authorization server on this machine, which the hub trusts and clients get tokens from: does OAuth work with somebody else's?

Client credentials (RFC 6749 §4.4) and metadata (RFC 8414), tokens signed as JWTs (RFC 9068) for the audience that the hub was told.
It also says of the person of this machine that a program may act for them (ID-JAG, by RFC 8693 token exchange), if that program knows
the secret; programs have the same id here and at the hub.
In a realm of its own, people: whoever comes to its page is signed in already, and programs register themselves (RFC 7591). Its tokens
are for the resource that is asked for, with scopes of its own, as Keycloak's are.
"""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

from kernel.ids import new_id
from tests.mcp_conformance.arrange import AUDIENCE, PERSON, REALM, SUBJECT
from tests.support.connections import compute_challenge
from tests.support.http_server import QuietHandler, serve_requests

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "of-the-conformance-client"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


@contextmanager
def issuing() -> Iterator[str]:
    """It answers inside the block; yields its address, which is its name in tokens too."""
    key = ECKey.generate_key("P-256", parameters={"kid": "only"})
    codes: dict[str, dict[str, list[str]]] = {}

    def make_token(typ: str = "at+jwt", **claims: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iat": now, "exp": now + 300, "jti": str(new_id())} | claims
        token = jwt.encode({"alg": "ES256", "kid": key.kid, "typ": typ}, claims, key, algorithms=["ES256"])
        return {"access_token": token, "token_type": "Bearer", "expires_in": 300}

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802  as http.server calls it
            if self.path.startswith(f"{REALM}/authorize?"):
                asked = parse_qs(urlsplit(self.path).query)
                codes[code := str(new_id())] = asked
                said = {"code": code, "state": asked["state"][0], "iss": url + REALM}
                self.write_answer(302, b"", {"Location": f"{asked['redirect_uri'][0]}?{urlencode(said)}"})
                return
            documents: dict[str, Any] = {
                "/jwks": {"keys": [key.as_dict(private=False)]},
                "/.well-known/oauth-authorization-server": {
                    "issuer": url,
                    "token_endpoint": f"{url}/token",
                    "grant_types_supported": ["client_credentials", EXCHANGE],
                    "token_endpoint_auth_methods_supported": ["client_secret_post"],
                },
                f"/.well-known/oauth-authorization-server{REALM}": {
                    "issuer": url + REALM,
                    "authorization_endpoint": f"{url}{REALM}/authorize",
                    "token_endpoint": f"{url}{REALM}/token",
                    "registration_endpoint": f"{url}{REALM}/register",
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["authorization_code"],
                    "code_challenge_methods_supported": ["S256"],
                    "token_endpoint_auth_methods_supported": ["none"],
                    "authorization_response_iss_parameter_supported": True,
                },
            }
            self._answer(200 if self.path in documents else 404, documents.get(self.path, {}))

        def do_POST(self) -> None:  # noqa: N802  as http.server calls it
            body = self.read_body().decode()
            if self.path == f"{REALM}/register":
                self._answer(201, json.loads(body) | {"client_id": str(new_id())})
                return
            asked = parse_qs(body)
            if self.path == f"{REALM}/token":
                self._redeem(asked)
                return
            if asked.get("client_secret") != [SECRET]:
                self._answer(401, {"error": "invalid_client"})
                return
            if asked.get("requested_token_type") == [ID_JAG]:
                named = {name: asked[name][0] for name in ("client_id", "resource")}
                said = make_token("oauth-id-jag+jwt", iss=url, aud=asked["audience"][0], sub=PERSON, **named)
                self._answer(200, said | {"issued_token_type": ID_JAG, "token_type": "N_A"})
                return
            self._answer(200, make_token(iss=url, aud=AUDIENCE, sub=SUBJECT))

        def _redeem(self, asked: dict[str, list[str]]) -> None:
            began = codes.pop(asked["code"][0], None)
            if began is None or compute_challenge(asked["code_verifier"][0]) != began["code_challenge"][0]:
                self._answer(400, {"error": "invalid_grant"})
                return
            audience = [*began.get("resource", []), "account"]
            scope = "openid profile email"
            self._answer(200, make_token(iss=url + REALM, aud=audience, sub=PERSON, scope=scope) | {"scope": scope})

        def _answer(self, status: int, document: Any) -> None:
            self.write_answer(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

    with serve_requests(Handler) as port:
        url = f"http://127.0.0.1:{port}"
        yield url
