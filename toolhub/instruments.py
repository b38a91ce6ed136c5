"""Instruments: what a process of the hub says of itself and of the whole hub, beside what it counts of its own work."""

from __future__ import annotations

from invocations.metrics import hub_gauges
from kernel.database import pool_gauges


def make_instruments() -> None:
    """Once in each process that is asked for metrics."""
    hub_gauges.make_instruments()
    pool_gauges.make_instruments()
