"""Repair what crashes leave, until told to stop."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from access.notifications import deliveries
from invocations.callbacks import delivery
from invocations.queue import sweeper
from kernel.observability import exposition, telemetry
from toolhub.instruments import make_instruments
from toolhub.loop_process import run_loop_process
from toolhub.loops import ProcessRole
from toolhub.startup import refuse_foreign_keys


class Command(BaseCommand):
    help = "Run the sweeper: unsent messages, unclaimed calls, expired leases; send messages."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--once", action="store_true", help="one pass, then print what was done")

    def handle(self, *args: Any, once: bool = False, **options: Any) -> None:
        refuse_foreign_keys()
        if once:
            done = sweeper.sweep_once() | {
                "delivered": deliveries.send_due(),
                "callbacks": delivery.send_due_deliveries(),
            }
            for name, count in done.items():
                self.stdout.write(f"{name}: {count}")
            return
        telemetry.setup_telemetry("upkeep")
        make_instruments()
        try:
            exposition.serve_metrics()
        except ValueError as error:
            raise CommandError(str(error)) from error
        if dead := run_loop_process(ProcessRole.UPKEEP):
            self.stderr.write(f"{', '.join(dead)} ended by itself.")
            sys.exit(1)  # whoever started it starts it again
