"""The proxy that speaks TLS before a hub, as the page on the production shape wants one; curl takes it for the host of that page."""

from __future__ import annotations

import http.client
import ssl
import subprocess
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OF_A_HOP = ("connection", "keep-alive", "transfer-encoding", "x-forwarded-for", "x-forwarded-proto")


@contextmanager
def tls_proxy(folder: Path, name: str, port: int) -> Iterator[dict[str, str]]:
    """https://``name`` leads to ``port`` of this host for whoever asks with curl and these variables."""
    certificate, key = folder / "proxy.crt", folder / "proxy.key"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={name}"]
    made += ["-addext", f"subjectAltName=DNS:{name}", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    class Passage(BaseHTTPRequestHandler):
        def pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {each: value for each, value in self.headers.items() if each.lower() not in OF_A_HOP}
            headers |= {"X-Forwarded-For": self.client_address[0], "X-Forwarded-Proto": "https"}
            behind = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            behind.request(self.command, self.path, body or None, headers)
            answer = behind.getresponse()
            content = answer.read()
            self.send_response_only(answer.status)
            for each, value in answer.getheaders():
                if each.lower() not in (*OF_A_HOP, "content-length"):
                    self.send_header(each, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            behind.close()

        do_GET = do_POST = pass_on  # noqa: N815  as http.server calls them

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passage)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (folder / ".curlrc").write_text(
        f'cacert = "{certificate}"\nconnect-to = "{name}:443:127.0.0.1:{server.server_port}"\n'
    )
    try:
        yield {"CURL_HOME": str(folder)}
    finally:
        server.shutdown()
        server.server_close()
