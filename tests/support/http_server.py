"""A small HTTP server on this machine, for what the hub asks or tells others."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Heard:
    """One request that arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass(slots=True)
class Server:
    """Answers every request with ``status`` and ``document``, and remembers what it heard."""

    url: str = ""
    status: int = 200
    document: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    heard: list[Heard] = field(default_factory=list)


@contextmanager
def local_server() -> Iterator[Server]:
    said = Server()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            names = {name.lower(): value for name, value in self.headers.items()}
            said.heard.append(Heard(self.command, self.path, names, body))
            text = said.document if isinstance(said.document, bytes) else json.dumps(said.document).encode()
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = _answer  # noqa: N815  names of the library

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    said.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield said
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
