"""Probes of a process that serves no requests: `/healthz` and `/readyz` of worker, upkeep and keeper, at TOOLHUB_PROBE_BIND.

Alive means that every loop beside the main thread still runs, or ends as the process does; ready, what it means of a web process.
"""

from __future__ import annotations

import json
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from django.conf import settings

from kernel.database.connections import release_connection
from toolhub.probes.readiness import DRAINING, OK, check_readiness, is_good

if TYPE_CHECKING:
    from collections.abc import Sequence

log = logging.getLogger("toolhub.probes")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], loops: Sequence[threading.Thread]) -> None:
        self.loops = loops
        super().__init__(address, _ProbeHandler)

    def alive(self) -> dict[str, str]:
        """In this order: before a loop is told to end the process says that it does."""
        return {loop.name: OK if loop.is_alive() or DRAINING.is_set() else "ended by itself" for loop in self.loops}


class _ProbeHandler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10

    def do_GET(self) -> None:
        match self.path.partition("?")[0]:
            case "/healthz":
                found = self.server.alive()
            case "/readyz":
                try:
                    found = self.server.alive() | check_readiness()
                finally:
                    release_connection()
            case _:
                self.send_error(404)
                return
        body = json.dumps({"ok": is_good(found), "checks": found}).encode()
        self.send_response(200 if is_good(found) else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Asked every few seconds."""


def serve_probes(loops: Sequence[threading.Thread]) -> ThreadingHTTPServer | None:
    """Answer from a thread of its own; None when TOOLHUB_PROBE_BIND is not set, or another process of this host has it."""
    if not settings.TOOLHUB_PROBE_BIND:
        return None
    host, _, port = settings.TOOLHUB_PROBE_BIND.rpartition(":")
    try:
        server = _Server((host.strip("[]"), int(port)), loops)
    except OSError as error:
        log.warning("No probes are answered at %s: %s", settings.TOOLHUB_PROBE_BIND, error)
        return None
    threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
    return server
