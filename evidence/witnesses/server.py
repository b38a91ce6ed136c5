"""Witness server: how a witness is asked over HTTP."""

from __future__ import annotations

import fcntl
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidence.witnesses.witness import MAX_REQUEST_BYTES, Witness, WitnessAnswer, WitnessState, read_or_make_key

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", required=True, help="what the witness is called, for example witness.example.org")
    parser.add_argument(
        "--log", action="append", required=True, metavar="VKEY", help="the key of a log to watch; may be repeated"
    )
    parser.add_argument("--dir", required=True, type=Path, help="where its key and what it has seen are kept")
    parser.add_argument("--bind", default="127.0.0.1:7380", help="where it answers, behind a server that speaks TLS")


class _Handler(BaseHTTPRequestHandler):
    timeout = 20
    protocol_version = "HTTP/1.1"  # connections are kept, as the protocol asks for
    witness: Witness

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        self.close_connection = True
        if self.path.rstrip("/").rpartition("/")[2] != "add-checkpoint":
            self._send(WitnessAnswer(404, "There is only add-checkpoint.\n"))
        elif not (length.isascii() and length.isdigit()):
            self._send(WitnessAnswer(411, "Send a Content-Length.\n"))
        elif int(length) > MAX_REQUEST_BYTES:
            self._send(WitnessAnswer(413, f"A request has at most {MAX_REQUEST_BYTES} bytes.\n"))
        else:
            body = self.rfile.read(int(length))
            self.close_connection = False
            self._send(self.witness.add_checkpoint(body))

    def _send(self, answer: WitnessAnswer) -> None:
        body = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        sys.stderr.write(f"{format % args}\n")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Two witnesses with one key, each with a memory of its own, would sign two histories."""
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"Another witness uses {folder}. Give each witness a folder of its own.") from None
        yield


def serve(*, name: str, log: list[str], dir: Path, bind: str) -> None:
    """Answer until the process is ended. Says first by which key others know this witness."""
    dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _alone(dir):
        _serve(name=name, log=log, dir=dir, bind=bind)


def _serve(*, name: str, log: list[str], dir: Path, bind: str) -> None:
    cosigner = read_or_make_key(dir / "witness.key", name)
    witness = Witness(cosigner, log, WitnessState(dir / "seen.json"))
    host, _, port = bind.rpartition(":")
    server = ThreadingHTTPServer((host.strip("[]"), int(port)), type("Handler", (_Handler,), {"witness": witness}))
    server.daemon_threads = True
    sys.stdout.write(f"{cosigner.key}\n")
    sys.stdout.write(f"Watching {', '.join(witness.origins)} at http://{host}:{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
