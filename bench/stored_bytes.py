"""Stored bytes: how much a governed call leaves in PostgreSQL, table by table, with indexes and freshly packed.

``python -m bench.stored_bytes [CALLS] [CHECKOUT]`` makes calls of a hub in its production shape, has them sealed and indexed, and
weighs the tables before and after, with those of another checkout beside it, if one is named. What a hub removes of its calls within
a day (:func:`access.budgets.ledger.remove_settled`) is removed before.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import psycopg

from bench.figures import ROOT, CannotMeasure, judge_figure, print_table, run_part
from bench.governed_calls import ProductionHub, RestCaller, run_production

DATABASE, REDIS = "TOOLHUB_TEST_DATABASE_URL", "TOOLHUB_TEST_REDIS_URL"
CALLS = 2_400
CALLERS = 4
SETTLED_S = 120
MOST_BYTES = 7_000
A_DAY_LATER = """
import os
from datetime import timedelta
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
import django
django.setup()
from access.budgets import ledger
remove = getattr(ledger, "remove_settled", lambda kept: 0)  # another checkout may keep all
while remove(timedelta()):
    pass
"""
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


def remove_what_goes_within_a_day(hub: ProductionHub, checkout: Path) -> None:
    subprocess.run([sys.executable, "-c", A_DAY_LATER], cwd=checkout, env=hub.env, check=True)


def weigh_calls(url: str, redis_url: str, calls: int, checkout: Path) -> dict[str, float]:
    """Bytes a call in each table."""
    with run_production(url, redis_url, checkout, kept=True) as hub:
        wait_until_indexed(hub.database)
        before = weigh_tables(hub.database)
        made = calls // CALLERS * CALLERS
        make_calls(hub, made)
        wait_until_indexed(hub.database)
        remove_what_goes_within_a_day(hub, checkout)
        return {table: (size - before.get(table, 0)) / made for table, size in weigh_tables(hub.database).items()}


def measure(calls: int = CALLS, beside: Path | None = None) -> list[list[str]]:
    url, redis_url = os.environ[DATABASE], os.environ[REDIS]
    checkouts = ({f"{beside}": beside} if beside is not None else {}) | {"this checkout": ROOT}
    found = {name: weigh_calls(url, redis_url, calls, checkout) for name, checkout in checkouts.items()}
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
    ours = sums["this checkout"]
    return [judge_figure(f"bytes a call: ≤ {MOST_BYTES:,}", f"{ours:,.0f}", reached=ours <= MOST_BYTES)]


def _highest(found: dict[str, dict[str, float]], table: str) -> float:
    return max(each.get(table, 0) for each in found.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.stored_bytes", description=__doc__)
    parser.add_argument("calls", nargs="?", type=int, default=CALLS)
    parser.add_argument("beside", nargs="?", type=Path, help="another checkout")
    asked = parser.parse_args()
    if not {DATABASE, REDIS} <= os.environ.keys():
        print(f"{DATABASE} and {REDIS} say which services are measured.", file=sys.stderr)
        return 1
    return run_part(partial(measure, asked.calls, asked.beside and asked.beside.resolve()))


if __name__ == "__main__":
    sys.exit(main())
