"""Stored bytes: how much a governed call leaves in PostgreSQL, table by table, with indexes and freshly packed.

``python -m bench.stored_bytes [CALLS] [CHECKOUT]`` makes calls of a hub in its production shape, has them sealed and indexed, and
weighs the tables before and after, with those of another checkout beside it, if one is named. What this one keeps is weighed once more
as it is when the month is over (``python -m bench.stored_bytes --pack``, within the hub's environment, closes it).
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psycopg

from bench.figures import ROOT, CannotMeasure, judge_figure, print_table, run_part
from bench.governed_calls import ProductionHub, RestCaller, run_production
from bench.hubs import run_python

DATABASE, REDIS = "TOOLHUB_TEST_DATABASE_URL", "TOOLHUB_TEST_REDIS_URL"
CALLS = 2_400  # some 5,000 facts: two blocks of the index that are full
CALLERS = 4
SETTLED_S = 120
MOST_BYTES = 7_000
SIZES = "SELECT relname, pg_total_relation_size(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
BEHIND = """
    SELECT (SELECT count(*) FROM evidence_pending)
         + COALESCE((SELECT sum(l.size - COALESCE(i.size, 0)) FROM evidence_log l
                     LEFT JOIN evidence_indexed i ON i.tenant_id = l.tenant_id
                     WHERE l.tenant_id <> '00000000-0000-0000-0000-000000000001'), 0)
"""


def weigh_tables(url: str) -> dict[str, int]:
    with psycopg.connect(url, autocommit=True) as server:
        server.execute("VACUUM FULL")
        return {str(name): int(size) for name, size in server.execute(SIZES).fetchall()}


def make_calls(hub: ProductionHub, calls: int) -> None:
    failed: list[int] = []

    def work(share: int) -> None:
        caller = RestCaller(hub)
        for _ in range(share):
            status, _ = caller.call()
            if status != 200:
                failed.append(status)

    threads = [threading.Thread(target=work, args=(calls // CALLERS,)) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise CannotMeasure(f"{len(failed)} calls had no value, the first {failed[0]}.")


def wait_until_indexed(url: str) -> None:
    until = time.monotonic() + SETTLED_S
    with psycopg.connect(url, autocommit=True) as server:
        while (row := server.execute(BEHIND).fetchone()) and row[0]:
            if time.monotonic() > until:
                raise CannotMeasure(f"{row[0]} facts are not sealed and indexed after {SETTLED_S} s.")
            time.sleep(0.5)


def weigh_calls(url: str, redis_url: str, calls: int, checkout: Path) -> dict[str, dict[str, float]]:
    """Bytes a call in each table; of this checkout also once the month is over."""
    found: dict[str, dict[str, float]] = {}
    name = "this checkout" if checkout == ROOT else str(checkout)
    with run_production(url, redis_url, checkout, kept=True) as hub:
        wait_until_indexed(hub.database)
        before = weigh_tables(hub.database)
        made = calls // CALLERS * CALLERS
        make_calls(hub, made)
        wait_until_indexed(hub.database)
        found[name] = _each(before, weigh_tables(hub.database), made)
        if checkout == ROOT:
            run_python(hub.env, "-m", "bench.stored_bytes", "--pack")
            found[f"{name}, month over"] = _each(before, weigh_tables(hub.database), made)
    return found


def _each(before: dict[str, int], after: dict[str, int], calls: int) -> dict[str, float]:
    return {table: (size - before.get(table, 0)) / calls for table, size in after.items()}


def pack_as_if_over() -> None:
    """Close what is full as it would be after the month, and pack it at once."""
    import django  # noqa: PLC0415  the measuring process has no Django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
    django.setup()
    from evidence.models import ClosedRange, Indexed  # noqa: PLC0415  models load once Django is set up
    from evidence.search.closed_blocks import close_blocks, pack_some  # noqa: PLC0415  the same

    for tenant_id in Indexed.objects.values_list("tenant_id", flat=True):
        close_blocks(tenant_id, until=datetime.now(UTC) + timedelta(days=1))
    for found in ClosedRange.objects.all():
        while pack_some(found.tenant_id, found.first_block):
            pass


def measure(calls: int = CALLS, beside: Path | None = None) -> list[list[str]]:
    url, redis_url = os.environ[DATABASE], os.environ[REDIS]
    found: dict[str, dict[str, float]] = {}
    for checkout in [*([beside] if beside else []), ROOT]:
        found |= weigh_calls(url, redis_url, calls, checkout)
    tables = sorted({table for each in found.values() for table in each}, key=lambda table: -_highest(found, table))
    rows = [
        [table, *(f"{each.get(table, 0):,.0f}" for each in found.values())]
        for table in tables
        if _highest(found, table) >= 1
    ]
    sums = {name: sum(each.values()) for name, each in found.items()}
    print_table(
        f"Bytes that a call leaves in PostgreSQL, of {calls:,} calls",
        ("table, with its indexes", *found),
        [*rows, ["all", *(f"{each:,.0f}" for each in sums.values())]],
    )
    *_, hot = sums.values()
    return [judge_figure(f"bytes a call, month over: ≤ {MOST_BYTES:,}", f"{hot:,.0f}", reached=hot <= MOST_BYTES)]


def _highest(found: dict[str, dict[str, float]], table: str) -> float:
    return max(each.get(table, 0) for each in found.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stored_bytes", description=__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=CALLS)
    parser.add_argument("beside", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--pack", action="store_true")
    asked = parser.parse_args()
    if asked.pack:
        pack_as_if_over()
        return 0
    if not {DATABASE, REDIS} <= os.environ.keys():
        print(f"{DATABASE} and {REDIS} say which services are measured.", file=sys.stderr)
        return 1
    return run_part(partial(measure, asked.calls, asked.beside and asked.beside.resolve()))


if __name__ == "__main__":
    sys.exit(main())
