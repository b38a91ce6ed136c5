"""Instruments: what a process of the hub says of itself and of the whole hub, beside what it counts of its own work."""

from __future__ import annotations

from invocations.metrics import call_metrics, hub_gauges
from kernel.database import pool_gauges


def make_instruments() -> None:
    """Once in each process that is asked for metrics."""
    call_metrics.get_call_instruments()
    hub_gauges.make_instruments()
    pool_gauges.make_instruments()
