"""Transit engine: what OpenBao and Vault answer to a signer, after their API pages; neither is to be had where the tests run."""

from __future__ import annotations

import base64
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.http_server import QuietHandler, serve_requests

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(slots=True)
class TransitEngine:
    """``refused``: operations that the token's policy does not allow, as ``sign``."""

    url: str = ""
    token: str = "s.first"
    keys: dict[str, Ed25519PrivateKey] = field(default_factory=dict)
    deletable: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    heard: list[str] = field(default_factory=list)

    def answer(self, method: str, path: str, token: str, body: dict[str, Any]) -> tuple[int, Any]:
        operation, _, name = path.partition("/")
        name, _, below = name.partition("/")
        if token != self.token or operation in self.refused:
            return 403, {"errors": ["permission denied"]}
        match method, operation, below:
            case "GET", "keys", "" if not name:
                return (200, {"data": {"keys": sorted(self.keys)}}) if self.keys else (404, {"errors": []})
            case "POST", "keys", "":
                assert body == {"type": "ed25519"}
                self.keys.setdefault(name, Ed25519PrivateKey.generate())
                return 200, {"data": self._describe(name)}
            case "GET", "keys", "":
                return (200, {"data": self._describe(name)}) if name in self.keys else (404, {"errors": []})
            case "POST", "keys", "config":
                self.deletable |= {name} if body["deletion_allowed"] else set()
                return 200, {"data": self._describe(name)}
            case "DELETE", "keys", "":
                if name not in self.deletable:
                    return 400, {"errors": ["deletion is not allowed for this key"]}
                self.deletable.discard(name)
                del self.keys[name]
                return 204, None
            case "POST", "sign", "":
                if name not in self.keys:
                    return 400, {"errors": ["signing key not found"]}
                assert body["key_version"] == 1
                signature = self.keys[name].sign(base64.b64decode(body["input"], validate=True))
                return 200, {"data": {"signature": f"vault:v1:{base64.b64encode(signature).decode()}"}}
        return 405, {"errors": ["unsupported operation"]}

    def _describe(self, name: str) -> dict[str, Any]:
        public = base64.b64encode(self.keys[name].public_key().public_bytes_raw()).decode()
        return {"name": name, "type": "ed25519", "keys": {"1": {"name": "ed25519", "public_key": public}}}


@contextmanager
def serve_transit_engine() -> Iterator[TransitEngine]:
    engine = TransitEngine()

    class Handler(QuietHandler):
        def _answer(self) -> None:
            body = self.read_body()
            parts = urlsplit(self.path)
            path = re.sub(r"^/v1/transit/", "", parts.path)
            engine.heard.append(f"{self.command} {path}")
            assert path != "keys" or parse_qs(parts.query) == {"list": ["true"]}
            status, document = engine.answer(
                self.command, path, self.headers.get("X-Vault-Token", ""), json.loads(body) if body else {}
            )
            self.write_answer(status, b"" if document is None else json.dumps(document).encode())

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815  names of the library

    with serve_requests(Handler) as port:
        engine.url = f"http://127.0.0.1:{port}/v1/transit"
        yield engine
