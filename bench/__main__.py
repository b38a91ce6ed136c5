"""Measure everything once and print it. Exit status 0 whatever the figures are; 1 when they could not be measured."""

from __future__ import annotations

import argparse
import os
import sys

from bench import boxes, direct, evidence, hubs, kills, load, others, peers_of_the_sdk, protocol, wheels
from bench.figures import CannotMeasure, Times, machine, print_table, verdict

HEAD = ("milliseconds", "N", "min", "p50", "p95")
PREFLIGHT_P95_MS = {"SQLite": 0.5, "PostgreSQL": 1.0}  # TOOLS-27 asks for 5
PREFLIGHT_P50_MS = {"PostgreSQL": 0.8}
DISCOVERY_P95_MS = 30.0
WARM_MS = (
    (boxes.SHARED, "p50", 6),
    (boxes.SHARED, "p95", 15),
    (boxes.FRESH, "p50", 15),
    (boxes.FRESH, "p95", 30),
    (boxes.SINGLE, "p50", 15),
)
CALLS_PER_S, BOX_MIB, AHEAD_MS, KILL_MS = 150, 16, 40, 250
PAST_CALLS = 100_000
GOVERNED_P50_MS, GOVERNED_P95_MS, GOVERNED_PER_S = 25, 60, 60
REDACTION_MS = 20
POLICY_MS = {"decide": 0.05, "analyse": 5_000, "try": 5_000}


def warm(rounds: int) -> list[list[str]]:
    """The levels against each other, against what Docker offers, and against a peer."""
    found = boxes.measure(rounds)
    base = found[boxes.SHARED].p50
    print_table(
        f"A call of a trivial tool, {rounds} interleaved rounds, one caller",
        (*HEAD, "p50 against shared"),
        [each.row(f"{each.p50 / base:.1f} ×") for each in found.values()],
    )

    def limit(way: str, which: str, most: float) -> list[str]:
        ms: float = getattr(found[way], which)
        return verdict(f"{way}: {which} ≤ {most:g} ms", f"{ms:.1f} ms", reached=ms <= most)

    def at_most(times: float, way: str, other: str) -> list[str]:
        ratio = found[way].p50 / found[other].p50
        return verdict(f"{way}: p50 ≤ {times:g} × {other}", f"{ratio:.2f} ×", reached=ratio <= times)

    def faster(times: float, way: str, other: str) -> list[str]:
        what = f"{way}: p50 ≥ {times:g} × faster than {other}"
        if other not in found:
            return verdict(what, "not measured", reached=False)
        ratio = found[other].p50 / found[way].p50
        return verdict(what, f"{ratio:.0f} ×", reached=ratio >= times)

    return [
        *(limit(*each) for each in WARM_MS),
        faster(15, boxes.SHARED, boxes.EXEC_CLI),
        faster(15, boxes.SHARED, boxes.EXEC),
        at_most(3, boxes.FRESH, boxes.SHARED),
        at_most(1, boxes.COLD, boxes.DEFAULT),
        faster(30, boxes.SHARED, boxes.PEER),
    ]


def under_load(seconds: float) -> list[list[str]]:
    rate, times = load.throughput(seconds)
    print_table(f"{load.CALLERS} callers for {seconds:g} s", (*HEAD, "calls/s"), [times.row(f"{rate:.0f}")])
    held = [sum(each) for each in load.memory()]
    print(f"\nA warm box holds {min(held):.1f} to {max(held):.1f} MiB with its shim ({len(held)} boxes).")
    return [
        verdict(f"shared, {load.CALLERS} callers: ≥ {CALLS_PER_S} calls/s", f"{rate:.0f}", reached=rate >= CALLS_PER_S),
        verdict(f"a warm box with its shim ≤ {BOX_MIB} MiB", f"{max(held):.1f} MiB", reached=max(held) <= BOX_MIB),
    ]


def with_wheels(rounds: int) -> list[list[str]]:
    ahead, inside = wheels.measure(rounds)
    print_table(f"A tool that needs {wheels.PACKAGE}", HEAD, [ahead.row(), inside.row()])
    times = inside.p50 / ahead.p50
    return [
        verdict(f"{ahead.name}: p50 ≤ {AHEAD_MS} ms", f"{ahead.p50:.1f} ms", reached=ahead.p50 <= AHEAD_MS),
        verdict(f"{ahead.name}: ≥ 10 × faster than inside", f"{times:.0f} ×", reached=times >= 10),
    ]


def trusted(rounds: int) -> None:
    print_table("A call of a trusted tool, without a box", HEAD, [each.row() for each in direct.measure(rounds)])


def redaction() -> list[list[str]]:
    found = [Times(name, ms) for name, ms in hubs.on_sqlite("bench.redaction").items()]
    print_table("All detectors over an output of 10 KiB, processor time", HEAD, [each.row() for each in found])
    return [
        verdict(f"{each.name}: p50 ≤ {REDACTION_MS} ms", f"{each.p50:.1f} ms", reached=each.p50 <= REDACTION_MS)
        for each in found
    ]


def killed(rounds: int, workers: int) -> list[list[str]]:
    over = kills.past_the_limit(rounds)
    gone, left = kills.of_workers(workers)
    print_table("What is ended", HEAD, [each.row() for each in (*over, gone)])
    late, slowest = max(each.p95 for each in over), max(gone.ms)
    return [
        verdict(
            f"a tool that runs too long is ended ≤ {KILL_MS} ms late (p95)", f"{late:.0f} ms", reached=late <= KILL_MS
        ),
        verdict("worker killed: its boxes are gone ≤ 1 s (the slowest)", f"{slowest:.0f} ms", reached=slowest <= 1000),
        verdict(f"boxes left of {workers} killed workers: 0", str(left), reached=left == 0),
    ]


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


def production(url: str, redis_url: str, seconds: float) -> list[list[str]]:
    """Web and worker as processes of their own, on PostgreSQL and Redis."""
    with protocol.production(url, redis_url) as hub:
        times, parts = protocol.beside_others(hub, redis_url, rounds=10)
        loads = [protocol.load(hub, callers, seconds) for callers in protocol.CALLERS]
        held = protocol.most_held(hub, callers=4)
    whole = times[0]
    print_table(
        "A call of a trivial tool, production shape, and what somebody would put together instead, in turn, one caller",
        (*HEAD, "p50 against governed"),
        [each.row(f"{each.p50 / whole.p50:.2f} ×") for each in times],
    )
    print_table(
        "Where the time of the governed call goes",
        (*HEAD, "share of p50"),
        [each.row(f"{each.p50 / whole.p50:.0%}") for each in parts],
    )
    print_table(
        f"Callers at once, {seconds:g} s each",
        (*HEAD, "calls/s", "failed"),
        [took.row(f"{rate:.0f}", str(dict(failed) or 0)) for rate, took, failed in loads],
    )
    by_name = {each.name: each for each in times}
    if others.MCP in by_name:
        ratio = by_name[protocol.GOVERNED_MCP].p50 / by_name[others.MCP].p50
        print(
            f"\nA governed call over MCP takes {ratio:.1f} × as long as one of a bare FastMCP server (p50, same rounds)."
        )
    by_callers = dict(zip(protocol.CALLERS, loads, strict=True))
    one, sixteen, many = (by_callers[callers] for callers in (1, 16, 64))
    growth = many[1].p50 / sixteen[1].p50
    failures = sixteen[2].total() + many[2].total()
    return [
        verdict(
            f"governed call, one caller: p50 ≤ {GOVERNED_P50_MS} ms",
            f"{one[1].p50:.1f} ms",
            reached=one[1].p50 <= GOVERNED_P50_MS,
        ),
        verdict(
            f"governed call, one caller: p95 ≤ {GOVERNED_P95_MS} ms",
            f"{one[1].p95:.1f} ms",
            reached=one[1].p95 <= GOVERNED_P95_MS,
        ),
        verdict(f"16 callers: ≥ {GOVERNED_PER_S} calls/s", f"{sixteen[0]:.0f}", reached=sixteen[0] >= GOVERNED_PER_S),
        verdict("16 and 64 callers: 0 failures", str(failures), reached=failures == 0),
        verdict("64 callers: p50 ≤ 4 × that of 16", f"{growth:.1f} ×", reached=growth <= 64 / 16),
        verdict("connections idle in a transaction while tools run: 0", str(held), reached=held == 0),
        *(
            [
                verdict(
                    f"governed call: p50 ≤ {others.DOCKER}",
                    f"{docker.p50 / whole.p50:.0f} × faster",
                    reached=whole.p50 <= docker.p50,
                )
            ]
            if (docker := next((each for each in times if each.name == others.DOCKER), None))
            else []
        ),
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


def of_the_sandbox(asked: argparse.Namespace) -> list[list[str]]:
    trusted(asked.rounds)
    return [
        *warm(asked.rounds),
        *under_load(asked.seconds),
        *with_wheels(asked.rounds),
        *killed(asked.rounds, asked.kills),
    ]


def of_the_hub(asked: argparse.Namespace) -> list[list[str]]:
    verdicts = redaction() + preflight("SQLite", hubs.on_sqlite("bench.preflight", str(asked.preflights)))
    if url := os.environ.get("TOOLHUB_TEST_DATABASE_URL"):
        verdicts += preflight("PostgreSQL", hubs.on_postgresql(url, "bench.preflight", str(asked.preflights)))
        verdicts += [discovery(url, asked.pages), *policy(url), *evidence.of_the_log(url, asked.seconds / 5)]
        verdicts += evidence.of_the_pairs(url)
        verdicts += evidence.of_the_search(url)
    else:
        print("\nPostgreSQL is not measured: TOOLHUB_TEST_DATABASE_URL is not set (`make bench` starts one).")
    governed(asked.calls)
    redis_url = os.environ.get("TOOLHUB_TEST_REDIS_URL")
    if url and redis_url:
        verdicts += production(url, redis_url, asked.seconds)
    else:
        print(
            "\nThe production shape is not measured: TOOLHUB_TEST_DATABASE_URL and TOOLHUB_TEST_REDIS_URL name its services."
        )
    return verdicts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=["sandbox", "hub", "sdk"], help="measure one part")
    parser.add_argument("--rounds", type=int, default=20, help="of the comparisons in the sandbox (default 20)")
    parser.add_argument("--seconds", type=float, default=10, help="of each load (default 10)")
    parser.add_argument("--kills", type=int, default=50, help="of workers (default 50)")
    parser.add_argument("--preflights", type=int, default=1000, help="for each database (default 1000)")
    parser.add_argument("--pages", type=int, default=100, help="of discovery under each filter (default 100)")
    parser.add_argument("--calls", type=int, default=20, help="governed calls over HTTP (default 20)")
    asked = parser.parse_args()
    verdicts: list[list[str]] = []
    try:
        url = os.environ.get("TOOLHUB_TEST_DATABASE_URL")
        print_table("Machine", ("", ""), [*machine(), *(hubs.database_rows(url) if url else [])])
        if asked.only in (None, "sandbox"):
            verdicts += of_the_sandbox(asked)
        if asked.only in (None, "hub"):
            verdicts += of_the_hub(asked)
        if asked.only in (None, "sdk"):
            peers_of_the_sdk.report()
    except CannotMeasure as error:
        print(f"\nIt could not be measured. {error}", file=sys.stderr)
        return 1
    if verdicts:
        print_table("Acceptance figures that apply now", ("figure", "measured", ""), verdicts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
