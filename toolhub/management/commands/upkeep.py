"""Repair what crashes leave, until told to stop."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from access.notifications import deliveries
from invocations.callbacks import delivery
from invocations.queue import sweeper
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
        if dead := run_loop_process(ProcessRole.UPKEEP):
            self.stderr.write(f"{', '.join(dead)} ended by itself.")
            sys.exit(1)  # whoever started it starts it again
