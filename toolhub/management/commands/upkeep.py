"""Repair what crashes leave, until told to stop."""

from __future__ import annotations

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from access import deliveries
from invocations import sweeper
from invocations.callbacks import sending
from toolhub.embedded import callback_thread, sender_thread
from toolhub.probes import serve_probes
from toolhub.startup import refuse_foreign_keys


class Command(BaseCommand):
    help = "Run the sweeper: unsent messages, calls nobody picked up, leases that ran out; send messages."

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--once", action="store_true", help="one pass, then print what was done")

    def handle(self, *args: Any, once: bool = False, **options: Any) -> None:
        refuse_foreign_keys()
        if once:
            done = sweeper.sweep() | {"delivered": deliveries.send_due(), "callbacks": sending.send_due()}
            for name, count in done.items():
                self.stdout.write(f"{name}: {count}")
            return
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with sender_thread() as sender, callback_thread() as callbacks:
            serve_probes([sender, callbacks])
            sweeper.run(stop)
