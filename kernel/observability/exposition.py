"""Exposition: how Prometheus reads the metrics of this process, and who may.

The web server answers at `/metrics`; workers, upkeep and keepers, which serve no requests, at TOOLHUB_METRICS_BIND. Labels name
tenants and their tools, so whoever may read metrics sees that of all: without a token the web server has no such address, and
others serve none beyond their own host.
"""

from __future__ import annotations

import hmac
import logging
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

log = logging.getLogger("toolhub.metrics")
REGISTRY = CollectorRegistry(
    auto_describe=False
)  # what the process measures (kernel.observability.telemetry), nothing of libraries
UNAUTHORIZED = b"Send the token of TOOLHUB_METRICS_TOKEN as a bearer token.\n"


def is_wanted() -> bool:
    return bool(settings.TOOLHUB_METRICS_TOKEN or settings.TOOLHUB_METRICS_BIND)


def answer_scrape(*, accept: str, authorization: str) -> tuple[int, str, bytes]:
    """Status, content type and body."""
    token = settings.TOOLHUB_METRICS_TOKEN
    if token and not hmac.compare_digest(authorization.encode(), f"Bearer {token}".encode()):
        return 401, "text/plain; charset=utf-8", UNAUTHORIZED
    encode, media_type = choose_encoder(accept)
    return 200, media_type, encode(REGISTRY)


class _MetricsHandler(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self) -> None:
        status, media_type, body = 404, "text/plain; charset=utf-8", b"There is only /metrics.\n"
        if self.path.partition("?")[0] == "/metrics":
            status, media_type, body = answer_scrape(
                accept=self.headers.get("Accept", ""), authorization=self.headers.get("Authorization", "")
            )
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Prometheus asks every few seconds."""


def serve_metrics() -> ThreadingHTTPServer | None:
    """Answer at TOOLHUB_METRICS_BIND from a thread of its own; None when it is not set. Raises ``ValueError`` when it may not be."""
    if not settings.TOOLHUB_METRICS_BIND:
        return None
    host, _, port = settings.TOOLHUB_METRICS_BIND.rpartition(":")
    host = host.strip("[]")
    if not settings.TOOLHUB_METRICS_TOKEN and not (host == "localhost" or ip_address(host).is_loopback):
        raise ValueError("TOOLHUB_METRICS_BIND beyond this host needs TOOLHUB_METRICS_TOKEN: metrics name all tenants.")
    try:
        server = ThreadingHTTPServer((host, int(port)), _MetricsHandler)
    except OSError as error:  # another process of this host has it; nothing else depends on metrics
        log.warning("No metrics are served at %s: %s", settings.TOOLHUB_METRICS_BIND, error)
        return None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server
