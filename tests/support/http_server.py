"""Small HTTP servers on this machine, for what the hub asks or tells others."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class QuietHandler(BaseHTTPRequestHandler):
    """Reads a request and writes its answer, and says nothing of it on the terminal."""

    def read_body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def write_answer(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serve_requests(
    handler: type[BaseHTTPRequestHandler], *, server_class: type[ThreadingHTTPServer] = ThreadingHTTPServer
) -> Iterator[int]:
    """Inside the block each request is answered in a thread of its own. Gives the port."""
    server = server_class(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


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

    class Handler(QuietHandler):
        def _answer(self) -> None:
            body = self.read_body()
            names = {name.lower(): value for name, value in self.headers.items()}
            said.heard.append(Heard(self.command, self.path, names, body))
            text = said.document if isinstance(said.document, bytes) else json.dumps(said.document).encode()
            self.write_answer(said.status, text, said.headers)

        do_GET = do_POST = _answer  # noqa: N815  names of the library

    with serve_requests(Handler) as port:
        said.url = f"http://127.0.0.1:{port}"
        yield said
