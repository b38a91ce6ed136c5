"""Serve the hub from this one process: web, worker and sweeper."""

from __future__ import annotations

from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from toolhub.embedded import all_parts


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
        with all_parts():
            self.stdout.write(f"Serving on {settings.TOOLHUB_PUBLIC_URL} (Ctrl-C stops everything)")
            uvicorn.run(
                "toolhub.asgi:application",
                host=host.strip("[]"),
                port=int(port),
                log_level="warning",
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=5,
            )
        self.stdout.write("Stopped.")
