"""Repair what crashes leave, until told to stop."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from access.notifications import deliveries
from invocations.callbacks import delivery
from invocations.queue import sweeper
from toolhub.embedded_mode import callback_thread, sender_thread
from toolhub.probes.server import serve_probes
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
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with sender_thread() as sender, callback_thread() as callbacks:
            serve_probes([sender, callbacks])
            sweeper.run_sweeper(stop)
