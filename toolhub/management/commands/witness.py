"""Run a witness: see that a log rewrites nothing, and sign that."""

from __future__ import annotations

import contextlib
from typing import Any

from django.core.management.base import BaseCommand

from evidence.witnesses.server import add_arguments, serve


class Command(BaseCommand):
    help = (
        "Run a witness (c2sp.org/tlog-witness) with a key of its own. Needs nothing of a hub; run it on another host."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: Any) -> None:
        add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            serve(**{name: options[name] for name in ("name", "log", "dir", "bind")})
