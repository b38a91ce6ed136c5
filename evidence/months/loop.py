"""Loop of months: tables for those to come are there before they begin."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from django.db import connection

from evidence.months.partitions import add_months
from kernel.loops import repeat_work

if TYPE_CHECKING:
    import threading

log = logging.getLogger("toolhub.months")
EVERY_S = 3600.0


def _pass() -> None:
    if connection.vendor == "postgresql" and (added := add_months(connection)):
        log.info("Facts have tables for %s more months", added)


def run_months(stop: threading.Event) -> None:
    """Add months until told to stop."""
    repeat_work(_pass, stop, every_s=EVERY_S, what="No months were added", log=log)
