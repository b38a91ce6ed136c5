"""An authorization server on this machine, which the hub trusts and clients get tokens from: does OAuth work with somebody else's?

Client credentials (RFC 6749 §4.4) and metadata (RFC 8414), tokens signed as JWTs (RFC 9068) for the audience that the hub was told.
"""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from joserfc import jwt
from joserfc.jwk import ECKey

from kernel.ids import new_id
from tests.mcp_conformance.arrange import AUDIENCE, SUBJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "of-the-conformance-client"


@contextmanager
def issuing() -> Iterator[str]:
    """It answers inside the block; yields its address, which is its name in tokens too."""
    key = ECKey.generate_key("P-256", parameters={"kid": "only"})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            documents: dict[str, Any] = {
                "/jwks": {"keys": [key.as_dict(private=False)]},
                "/.well-known/oauth-authorization-server": {
                    "issuer": url,
                    "token_endpoint": f"{url}/token",
                    "grant_types_supported": ["client_credentials"],
                    "token_endpoint_auth_methods_supported": ["client_secret_post"],
                },
            }
            self._answer(200 if self.path in documents else 404, documents.get(self.path, {}))

        def do_POST(self) -> None:
            asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if asked.get("client_secret") != [SECRET]:
                self._answer(401, {"error": "invalid_client"})
                return
            now = int(time.time())
            claims = {"iss": url, "aud": AUDIENCE, "sub": SUBJECT, "iat": now, "exp": now + 300, "jti": str(new_id())}
            token = jwt.encode({"alg": "ES256", "kid": key.kid}, claims, key, algorithms=["ES256"])
            self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 300})

        def _answer(self, status: int, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
