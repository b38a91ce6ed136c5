"""Pool gauges: how many connections to PostgreSQL a process has, and who waits for one.

On SQLite there is no pool, and nothing to say. The names are those of OpenTelemetry's conventions for databases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import connection
from opentelemetry.metrics import Observation

from kernel import names
from kernel.observability import telemetry
from kernel.singleton import Once

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opentelemetry.metrics import CallbackOptions


def _read_pool() -> Mapping[str, int] | None:
    """None where there is no pool. It is of the whole process, whichever thread asks."""
    pool = getattr(connection, "pool", None)
    return pool.get_stats() if pool is not None else None


def _connections(_: CallbackOptions) -> Iterable[Observation]:
    if (found := _read_pool()) is None:
        return []
    idle = found.get("pool_available", 0)
    states = {"idle": idle, "used": max(0, found.get("pool_size", 0) - idle)}
    return [Observation(count, {names.ATTR_POOL_STATE: state}) for state, count in states.items()]


def _most(_: CallbackOptions) -> Iterable[Observation]:
    found = _read_pool()
    return [Observation(found["pool_max"])] if found is not None else []


def _waiting(_: CallbackOptions) -> Iterable[Observation]:
    found = _read_pool()
    return [Observation(found.get("requests_waiting", 0))] if found is not None else []


@Once
def make_instruments() -> bool:
    """Once in each process that is asked for metrics."""
    meter = telemetry.get_meter()
    meter.create_observable_gauge(
        names.METRIC_POOL, [_connections], description="Connections to the database, by state"
    )
    meter.create_observable_gauge(names.METRIC_POOL_MAX, [_most], description="The most that there may be")
    meter.create_observable_gauge(names.METRIC_POOL_WAITING, [_waiting], description="Threads that wait for one")
    return True
