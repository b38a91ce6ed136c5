"""Servers of models: on this machine, each answers what a test has written down, also half of it or nothing."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.support.http_server import Heard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request is answered: pieces of a body, each sent by itself.

    ``cut``: the connection ends without the body's end. ``stall``: nothing more is sent until the caller goes. ``endless``: the last
    piece again and again, until the caller goes.
    """

    body: Sequence[bytes] = ()
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    stall: bool = False
    endless: bool = False


def json_reply(document: Any, status: int = 200, **others: Any) -> Reply:
    return Reply([json.dumps(document).encode()], status, **others)


def event_reply(*chunks: Any, **others: Any) -> Reply:
    """Chunks as server-sent events; bytes as they are."""
    body = [each if isinstance(each, bytes) else b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in chunks]
    return Reply(body, content_type="text/event-stream", **others)


@dataclass(slots=True)
class ModelServer:
    """``answer`` makes the reply to a request. ``left`` is set once a caller went before the end of one."""

    answer: Callable[[Heard], Reply]
    url: str = ""
    heard: list[Heard] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(each.body) for each in self.heard]


@contextmanager
def model_server(answer: Reply | Callable[[Heard], Reply], *, port: int = 0) -> Iterator[ModelServer]:
    """``port``: 0 for any that is free."""
    server = ModelServer(answer if callable(answer) else lambda _: answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            names = {name.lower(): value for name, value in self.headers.items()}
            server.heard.append(Heard(self.command, self.path, names, body))
            self.close_connection = True
            try:
                self._send(server.answer(server.heard[-1]))
            except OSError:
                server.left.set()

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            head = {"Content-Type": reply.content_type, "Connection": "close", "Transfer-Encoding": "chunked"}
            for name, value in (head | reply.headers).items():
                self.send_header(name, value)
            self.end_headers()
            for piece in reply.body:
                self._send_piece(piece)
            while reply.endless:
                self._send_piece(reply.body[-1])
            if reply.stall:
                self.rfile.read(1)  # returns when the caller closes
                server.left.set()
            elif not reply.cut:
                self.wfile.write(b"0\r\n\r\n")

        def _send_piece(self, piece: bytes) -> None:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.url = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        thread.join()
        listener.server_close()
