"""Measure everything once and print it. Exit status 0 whatever the figures are; 1 when they could not be measured."""

from __future__ import annotations

import argparse
import os
import sys

from bench import boxes, hubs
from bench.figures import CannotMeasure, Times, machine, print_table

HEAD = ("milliseconds", "N", "min", "p50", "p95")
PREFLIGHT_P95_MS = {"SQLite": 0.5, "PostgreSQL": 1.0}  # TOOLS-27 asks for 5
PREFLIGHT_P50_MS = {"PostgreSQL": 0.8}
DISCOVERY_P95_MS = 30.0
COLD_RATIO = 1.0
PAST_CALLS = 100_000
POLICY_MS = {"decide": 0.05, "analyse": 5_000, "try": 5_000}


def verdict(what: str, measured: str, *, reached: bool) -> list[str]:
    return [what, measured, "reached" if reached else "NOT reached"]


def cold(rounds: int) -> list[str]:
    found = boxes.measure(rounds)
    base = found[boxes.DEFAULT].p50
    print_table(
        f"A cold call of a trivial tool, {rounds} interleaved rounds",
        (*HEAD, "p50 against docker run --rm"),
        [each.row(f"{each.p50 / base:.2f} ×") for each in found.values()],
    )
    ratio = found[boxes.SANDBOX].p50 / base
    return verdict(
        f"cold call ≤ {COLD_RATIO:.1f} × docker run --rm (p50)", f"{ratio:.2f} ×", reached=ratio <= COLD_RATIO
    )


def preflight(name: str, found: dict[str, list[float]]) -> list[list[str]]:
    whole = Times("one statement and all steps", found.pop("whole"))
    naive = Times("the same in the plain way, a query a noun", found.pop("naive"))
    rows = [whole.row(), *[Times(f"  {each}", ms).row() for each, ms in found.items()], naive.row()]
    print_table(f"Preflight in process, everything switched on, {name}", HEAD, rows)
    print(f"The plain way takes {naive.p50 / whole.p50:.1f} × as long (p50, same rounds).")
    limits = [(PREFLIGHT_P50_MS.get(name), "p50", whole.p50), (PREFLIGHT_P95_MS[name], "p95", whole.p95)]
    return [
        verdict(f"preflight {which} ≤ {limit} ms, {name}", f"{measured:.2f} ms", reached=measured <= limit)
        for limit, which, measured in limits
        if limit is not None
    ]


def discovery(url: str, rounds: int) -> list[str]:
    found = hubs.on_postgresql(url, "bench.discovery", str(rounds))
    pages = [Times(name, ms) for name, ms in found.items()]
    print_table(
        "A page of discovery, 10,000 tools, 1,000 tenants of 200 installations, PostgreSQL",
        HEAD,
        [each.row() for each in pages],
    )
    worst = max(pages, key=lambda each: each.p95)
    return verdict(
        f"discovery p95 ≤ {DISCOVERY_P95_MS:.0f} ms of server time under every filter (worst: {worst.name})",
        f"{worst.p95:.1f} ms",
        reached=worst.p95 <= DISCOVERY_P95_MS,
    )


def policy(url: str) -> list[list[str]]:
    found = hubs.on_postgresql(url, "bench.policy", str(PAST_CALLS))
    measured = [Times(name, ms) for name, ms in found.items()]
    print_table("Policy: to decide, to compare, to try a draft on past calls", HEAD, [each.row() for each in measured])
    return [
        verdict(f"{each.name} ≤ {limit} ms (p50)", f"{each.p50:.3g} ms", reached=each.p50 <= limit)
        for each in measured
        if (limit := POLICY_MS.get(each.name.split()[0].rstrip(","))) is not None
    ]


def governed(calls: int) -> None:
    seen, parts = hubs.calls(calls)
    total = seen[0].p50
    print_table("A governed call over HTTP, embedded hub, one caller", HEAD, [each.row() for each in seen])
    print_table(
        "Where the time of the call goes",
        (*HEAD, "share of p50"),
        [each.row(f"{each.p50 / total:.0%}") for each in parts],
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="of the cold comparison (default 20)")
    parser.add_argument("--preflights", type=int, default=1000, help="for each database (default 1000)")
    parser.add_argument("--pages", type=int, default=100, help="of discovery under each filter (default 100)")
    parser.add_argument("--calls", type=int, default=20, help="governed calls over HTTP (default 20)")
    asked = parser.parse_args()
    print_table("Machine", ("", ""), machine())
    try:
        verdicts = [cold(asked.rounds), *preflight("SQLite", hubs.on_sqlite("bench.preflight", str(asked.preflights)))]
        if url := os.environ.get("TOOLHUB_TEST_DATABASE_URL"):
            verdicts += preflight("PostgreSQL", hubs.on_postgresql(url, "bench.preflight", str(asked.preflights)))
            verdicts += [discovery(url, asked.pages), *policy(url)]
        else:
            print(
                "\nPostgreSQL is not measured: TOOLHUB_TEST_DATABASE_URL is not set (`scripts/testenv start` starts one)."
            )
        governed(asked.calls)
    except CannotMeasure as error:
        print(f"\nIt could not be measured. {error}", file=sys.stderr)
        return 1
    print_table("Acceptance figures that apply now", ("figure", "measured", ""), verdicts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
