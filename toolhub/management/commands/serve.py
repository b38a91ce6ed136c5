"""The web server: of the production shape, or with worker, sweeper and keeper in one process, which is the embedded default."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import threading
from typing import TYPE_CHECKING, Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from sse_starlette.sse import AppStatus

from invocations.mcp.list_watch import close_streams
from invocations.sandbox.factory import current_sandbox
from kernel.http.open_requests import refuse_open_requests
from kernel.http.uvicorn_protocol import Protocol
from kernel.huge_pages import start_collapses
from registry.model_providers.early_imports import start_early_imports
from toolhub.database.migration_state import find_missing_migrations
from toolhub.embedded_mode import run_all_parts
from toolhub.probes.readiness import DRAINING
from toolhub.startup import missing_proxy

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from django.core.management.base import CommandParser


log = logging.getLogger("toolhub.serve")
ANSWERING_S = 2.0  # in which those who still wait at the end are told so


class Server(uvicorn.Server):
    """Says that it serves when it does, and then imports what the first call of a model would wait for. At its end it waits for
    requests, and not for who only listens.
    """

    def __init__(self, config: uvicorn.Config, *, serves: Callable[[], object]) -> None:
        super().__init__(config)
        self._serves = serves
        # The SDK's streams of MCP would be cut off with the signal, in the middle of calls that end in time.
        AppStatus.enable_automatic_graceful_drain = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._serves()
            start_early_imports()
            start_collapses()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        close_streams()
        # Before uvicorn's own patience ends: it would answer 500 and write an error for each.
        patience_s = float(self.config.timeout_graceful_shutdown or 0) - ANSWERING_S
        ending = asyncio.get_running_loop().call_later(patience_s, refuse_open_requests)
        try:
            await super().shutdown(sockets)
        finally:
            ending.cancel()


class DrainingServer(Server):
    """Goes on serving for a while after it was told to end, and says so at `/readyz`: whoever sends it requests looks away first.

    Told a second time it ends at once.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if DRAINING.is_set() or not settings.TOOLHUB_DRAIN_S:
            super().handle_exit(sig, frame)
            return
        DRAINING.set()
        timer = threading.Timer(settings.TOOLHUB_DRAIN_S, super().handle_exit, (sig, frame))
        timer.daemon = True
        timer.start()


class EmbeddedServer(Server):
    """Ends the running calls before it waits for requests: their callers then get an answer, and nobody waits for a tool."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.to_thread(current_sandbox().close)
        await super().shutdown(sockets)


def check_database() -> None:
    if find_missing_migrations():
        raise CommandError(
            "The database is not up to date. Type `.venv/bin/python manage.py migrate`, or start with `make run`."
        )
    connection.close()


class Command(BaseCommand):
    help = "Serve the hub at TOOLHUB_BIND until Ctrl-C; in the embedded default with worker, sweeper and keeper in this process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-access-log", action="store_true", help="do not write a line for each request")

    def handle(self, *args: Any, **options: Any) -> None:
        embedded = settings.TOOLHUB_EMBEDDED
        if embedded:  # elsewhere a web process that waits for its database answers so at /readyz
            check_database()
        host, _, port = settings.TOOLHUB_BIND.rpartition(":")
        if sentence := missing_proxy():
            log.warning(sentence)
        server = (EmbeddedServer if embedded else DrainingServer)(
            uvicorn.Config(
                "toolhub.asgi:application",
                host=host.strip("[]"),
                port=int(port),
                http=Protocol,
                ws="none",
                log_level="warning" if embedded else "info",
                access_log=not options["no_access_log"],
                log_config=None,  # its lines go where all others go, in their form
                lifespan="off",
                server_header=False,
                proxy_headers=False,  # the application asks them itself (toolhub/asgi.py)
                timeout_graceful_shutdown=5 if embedded else 10,
            ),
            serves=lambda: self.stdout.write(f"Serving on {settings.TOOLHUB_PUBLIC_URL} (Ctrl-C stops everything)"),
        )
        # Uvicorn sends itself the signal again when it has ended; SIGTERM must leave time for the other parts, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with run_all_parts() if embedded else contextlib.nullcontext(), contextlib.suppress(KeyboardInterrupt):
            server.run()
        self.stdout.write("Stopped.")
