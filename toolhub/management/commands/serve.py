"""Serve the hub from this one process: web, worker and sweeper."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING, Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from invocations.sandbox.current import current_sandbox
from toolhub.embedded import all_parts

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


class Server(uvicorn.Server):
    """Says that it serves when it does. Ends the running calls before it waits for requests: their callers then get an answer,
    and nobody waits for a tool."""

    def __init__(self, config: uvicorn.Config, *, serves: Callable[[], object]) -> None:
        super().__init__(config)
        self._serves = serves

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._serves()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.to_thread(current_sandbox().close)
        await super().shutdown(sockets)


class Command(BaseCommand):
    help = "Serve the embedded hub (web, worker, sweeper in one process) until Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.TOOLHUB_EMBEDDED:
            raise CommandError(
                "TOOLHUB_DATABASE_URL is set: this is the production shape. Start `uvicorn toolhub.asgi:application` and "
                "`celery -A toolhub worker` instead."
            )
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            raise CommandError(
                "The database is not up to date. Type `.venv/bin/python manage.py migrate`, or start with `make run`."
            )
        connection.close()
        host, _, port = settings.TOOLHUB_BIND.rpartition(":")
        server = Server(
            uvicorn.Config(
                "toolhub.asgi:application",
                host=host.strip("[]"),
                port=int(port),
                log_level="warning",
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=5,
            ),
            serves=lambda: self.stdout.write(f"Serving on {settings.TOOLHUB_PUBLIC_URL} (Ctrl-C stops everything)"),
        )
        # Uvicorn sends itself the signal again when it has ended; SIGTERM must leave time for the other parts, as Ctrl-C does.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with all_parts(), contextlib.suppress(KeyboardInterrupt):
            server.run()
        self.stdout.write("Stopped.")
