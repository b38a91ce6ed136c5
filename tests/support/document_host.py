"""A host of client documents on this machine (CIMD): https with a certificate that a hub believes which is told its authority.

A program's id is the address of its document here. The hub is told to look for documents in the network of this machine, too
(TOOLHUB_CLIENT_DOCUMENT_NETWORKS), and to believe the authority (SSL_CERT_FILE, which OpenSSL reads); the rest is as elsewhere.
"""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST = "localhost"


@dataclass(frozen=True, slots=True)
class DocumentHost:
    """``settings``: of a hub that reads the documents. ``heard``: the paths that were asked for. ``others``: what is answered at a
    path in place of its document: status, headers, body.
    """

    url: str
    settings: dict[str, str]
    heard: list[str] = field(default_factory=list)
    others: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)

    def build_id(self, program: str) -> str:
        """The id of a program, and where its document is."""
        return f"{self.url}/{program}/client.json"


def describe(client_id: str) -> dict[str, Any]:
    """The redirect URIs name no port, as Claude Code's do."""
    return {
        "client_id": client_id,
        "client_name": client_id.split("/")[-2],
        "redirect_uris": ["http://127.0.0.1/callback", f"http://{HOST}/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def _build_certificate(name: str, key: Any, *, issuer: x509.Certificate | None, signed_by: Any) -> x509.Certificate:
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now, is_authority = datetime.now(UTC), issuer is None
    builder = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(issuer.subject if issuer else named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return builder.sign(signed_by, hashes.SHA256())


def _write_certificates(folder: Path) -> tuple[Path, Path]:
    """The authority, and the host's certificate with its key."""
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _build_certificate("An authority of tests", authority_key, issuer=None, signed_by=authority_key)
    certificate = _build_certificate(HOST, key, issuer=authority, signed_by=authority_key)
    written = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    believed, shown = folder / "authority.pem", folder / "host.pem"
    believed.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    shown.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + written)
    return believed, shown


@contextmanager
def document_host(folder: Path) -> Iterator[DocumentHost]:
    """It answers inside the block; its certificates are written to ``folder``."""
    believed, shown = _write_certificates(folder)
    heard: list[str] = []
    others: dict[str, tuple[int, dict[str, str], bytes]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(self.path)
            usual: tuple[int, dict[str, str], bytes] = (200, {}, json.dumps(describe(url + self.path)).encode())
            status, headers, body = others.get(self.path, usual)
            self.send_response(status)
            lengths = {"Content-Type": "application/json", "Content-Length": str(len(body))}
            for name, value in (lengths | headers).items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # who asks may have read enough
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(shown)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://{HOST}:{server.server_port}"
    settings = {"TOOLHUB_CLIENT_DOCUMENT_NETWORKS": "127.0.0.0/8,::1/128", "SSL_CERT_FILE": str(believed)}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield DocumentHost(url, settings, heard, others)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
