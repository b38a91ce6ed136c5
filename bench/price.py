"""Price of a call: what a governed call takes of the processor in each process, of PostgreSQL and of its log, production shape.

``python -m bench.price`` measures this alone. ``--against CHECKOUT`` measures another checkout in the same run, in turn (A B B A): the
speed of the machine drifts. ``--beside`` measures ContextForge too, a gateway for MCP servers. ``--statements`` prints what passes
between the hub and PostgreSQL, exchange by exchange.

Each run appends a line to ``var/bench/price.jsonl``, and prints what the last one on this machine had: so a change that makes a call
dearer is seen. The file is not committed, since processor times of another machine say nothing; what does not depend on the machine
(exchanges, transactions, bytes of the log) is held by acceptance figures instead.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import redis

from bench.contextforge_peer import ForgeCaller, run_contextforge
from bench.figures import ROOT, CannotMeasure, describe_machine, judge_figure, print_table, read_output, run_part
from bench.governed_calls import ProductionHub, RestCaller, measure_load, run_production
from bench.hubs import describe_database
from bench.idle import TICKS
from bench.statement_counts import Counts, count_statements
from invocations.sandbox.docker import INSTANCE
from invocations.sandbox.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.figures import MeasuredTimes
    from bench.governed_calls import Caller

CALLERS = (1, 16)
HISTORY = ROOT / "var/bench/price.jsonl"
EXCHANGES, TRANSACTIONS, WAL_KB, CPU_MS = 6, 5, 15, 16
COUNTED_CALLS, IDLE_S = 100, 5.0
WEB, WORKER, BACKENDS, BOX, REDIS = "web", "worker", "PostgreSQL backends", "box", "Redis"
PARTS = (WEB, WORKER, BACKENDS, BOX)  # the sum of which is the price
_USAGE = (("/sys/fs/cgroup/cpuacct/docker/{}/cpuacct.usage", 1e6), ("/sys/fs/cgroup/docker/{}/cpu.stat", 1e3))
_SLICE = ("/sys/fs/cgroup/system.slice/docker-{}.scope/cpu.stat", 1e3)
_POOLED = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
_WAL = "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"


@dataclass(frozen=True, slots=True)
class Look:
    """What was used up to a moment: milliseconds of processor and context switches by part, bytes of the log."""

    cpu: dict[str, float]
    switches: dict[str, int]
    wal: int


@dataclass(slots=True)
class Price:
    """What one call took in one round, by part; and how the load went."""

    cpu: dict[str, float]
    switches: dict[str, float]
    wal: float
    rate: float
    took: MeasuredTimes
    failed: int

    @property
    def whole(self) -> float:
        """Without Redis, which may serve others too."""
        return sum(took for part, took in self.cpu.items() if part != REDIS)


class Meter:
    """Reads what processes and their PostgreSQL have used, while they are called."""

    def __init__(self, processes: dict[str, int], database_url: str, open_caller: Callable[[], Caller]) -> None:
        self._processes, self._open_caller = processes, open_caller
        self._database = psycopg.connect(database_url, autocommit=True)

    def close(self) -> None:
        self._database.close()

    def look(self) -> Look:
        backends = [row[0] for row in self._database.execute(_POOLED).fetchall()]
        processes = {name: [pid] for name, pid in self._processes.items()} | {BACKENDS: backends}
        wal = self._database.execute(_WAL).fetchone()
        return Look(
            {name: sum(map(_cpu_ms, pids)) for name, pids in processes.items()},
            {name: sum(map(_switches, pids)) for name, pids in processes.items()},
            int(wal[0]) if wal else 0,
        )

    def measure(self, callers: int, seconds: float) -> Price:
        before = self.look()
        rate, took, failed = measure_load(self._open_caller, callers, seconds)
        after, calls = self.look(), len(took.ms)
        return Price(
            {part: (after.cpu[part] - before.cpu[part]) / calls for part in after.cpu},
            {part: (after.switches[part] - before.switches[part]) / calls for part in after.switches},
            (after.wal - before.wal) / calls,
            rate,
            took,
            failed.total(),
        )


class HubMeter(Meter):
    """Reads what the boxes and Redis of a hub have used, too."""

    def __init__(self, hub: ProductionHub, redis_url: str) -> None:
        super().__init__(hub.processes, hub.database, partial(RestCaller, hub))
        self._instance = hub.env["TOOLHUB_INSTANCE"]
        self._redis = redis.Redis.from_url(redis_url)
        self._used: dict[str, float] = {}  # by each box, those too that have gone since: what idles is ended

    def close(self) -> None:
        super().close()
        self._redis.close()

    def look(self) -> Look:
        found = super().look()
        used: dict[str, Any] = self._redis.info("cpu")
        found.cpu[REDIS] = 1000 * (used["used_cpu_sys"] + used["used_cpu_user"])
        boxes = self._boxes()
        self._used |= {box: ms for box in boxes if (ms := _box_ms(box)) is not None}
        if boxes and not self._used:
            raise CannotMeasure(
                "The control group of a box is nowhere that is known. Does the engine run on another machine?"
            )
        found.cpu[BOX] = sum(self._used.values())
        return found

    def _boxes(self) -> list[str]:
        with closing(Engine()) as engine:
            return [each["Id"] for each in engine.find({INSTANCE: self._instance})]


def _cpu_ms(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return 1000 * (int(fields[11]) + int(fields[12])) / TICKS


def _switches(pid: int) -> int:
    """Of the threads that are there; those of one that has ended are lost."""
    found = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            lines = status.read_text().splitlines()
        except OSError:
            continue
        found += sum(int(line.rpartition("\t")[2]) for line in lines if "ctxt_switches" in line)
    return found


def _box_ms(box: str) -> float | None:
    """None of one that has just ended."""
    for pattern, divisor in (*_USAGE, _SLICE):
        with suppress(OSError):
            words = Path(pattern.format(box)).read_text().split()
            return int(words[1] if words[0] == "usage_usec" else words[0]) / divisor
    return None


def measure_prices(meters: dict[str, Meter], *, rounds: int, seconds: float) -> dict[str, dict[int, list[Price]]]:
    """By what is measured and number of callers, each round's; all in turn, forwards and backwards."""
    found: dict[str, dict[int, list[Price]]] = {name: {callers: [] for callers in CALLERS} for name in meters}
    for number in range(rounds):
        for callers in CALLERS:
            for name in list(meters)[:: -1 if number % 2 else 1]:
                found[name][callers].append(meters[name].measure(callers, seconds))
    return found


def count_one_call(database_url: str, redis_url: str, source: Path) -> dict[str, Counts | float]:
    """What one call alone needs, by process, through a proxy that counts; less what the process does anyway meanwhile."""
    with count_statements(database_url) as (proxy, through):
        settings = {"PGSSLMODE": "disable", "PGGSSENCMODE": "disable"}
        with run_production(through, redis_url, source, kept=False, **settings) as hub:
            found: dict[str, Any] = {}
            pids, caller = hub.processes, RestCaller(hub)
            begun = {name: proxy.of(pid) for name, pid in pids.items()}
            time.sleep(IDLE_S)
            idle = {name: proxy.of(pid).since(begun[name]) for name, pid in pids.items()}
            before, at = {name: proxy.of(pid) for name, pid in pids.items()}, time.monotonic()
            for _ in range(COUNTED_CALLS):
                status, _ = caller.call()
                if status != 200:
                    raise CannotMeasure(f"A call was answered with {status}.")
            share = (time.monotonic() - at) / IDLE_S
            for name, pid in pids.items():
                found[name] = proxy.of(pid).since(before[name])
                if not found[name].exchanges:
                    raise CannotMeasure(f"No exchange of {name} was counted. Do its connections say whose they are?")
                for what in ("exchanges", "transactions", "statements"):
                    whole = getattr(found[name], what) - share * getattr(idle[name], what)
                    found[f"{name} {what}"] = whole / COUNTED_CALLS
    return found


def _median(prices: Sequence[Price], part: str) -> float:
    return statistics.median(each.cpu[part] for each in prices)


def print_prices(found: dict[str, dict[int, list[Price]]]) -> None:
    for callers in CALLERS:
        rows = []
        for part in (*PARTS, REDIS):
            of = [found[name][callers] for name in found]
            switched = [statistics.median(each.switches.get(part, 0.0) for each in some) for some in of]
            rows.append([part, *(f"{_median(some, part):.2f}" for some in of), *(f"{each:.0f}" for each in switched)])
        sums = [statistics.median(each.whole for each in found[name][callers]) for name in found]
        rows.append(["sum without Redis", *(f"{each:.2f}" for each in sums), *([""] * len(found))])
        for title, value in (
            ("calls/s", lambda each: each.rate),
            ("p50 ms", lambda each: each.took.p50),
            ("KB of WAL", lambda each: each.wal / 1000),
            ("failed", lambda each: each.failed),
        ):
            shown = [f"{statistics.median(map(value, found[name][callers])):.1f}" for name in found]
            rows.append([title, *shown, *([""] * len(found))])
        head = ("median of the rounds", *(f"{name}: ms" for name in found), *(f"{name}: switches" for name in found))
        print_table(f"Processor time of a call, {callers} callers", head, rows)


def print_beside(peer: str, theirs: dict[int, list[Price]], ours: dict[int, list[Price]]) -> None:
    """A gateway that decides and passes on, beside what decides, executes and proves."""
    rows = []
    for callers in CALLERS:
        for title, value in (
            ("processor ms a call", lambda each: each.whole),
            ("calls/s", lambda each: each.rate),
            ("p50 ms", lambda each: each.took.p50),
            ("failed", lambda each: each.failed),
        ):
            pair = [statistics.median(map(value, found[callers])) for found in (ours, theirs)]
            ratio = f"{pair[1] / pair[0]:.1f} ×" if title != "failed" else ""
            rows.append([f"{callers} callers: {title}", *(f"{each:.1f}" for each in pair), ratio])
    parts = {part: statistics.median(each.cpu[part] for each in theirs[16]) for part in theirs[16][0].cpu}
    rows += [[f"16 callers: {part}, processor ms", "", f"{took:.1f}", ""] for part, took in parts.items()]
    print_table(f"Beside {peer}, which executes nothing itself", ("median of the rounds", "this", peer, "of it"), rows)


def print_counts(counts: dict[str, dict[str, Any]], *, statements: bool) -> None:
    rows = []
    for what in ("exchanges", "transactions", "statements"):
        rows += [
            [f"{what}, {process}", *(f"{found[f'{process} {what}']:.2f}" for found in counts.values())]
            for process in (WEB, WORKER)
        ]
        rows.append([f"{what}, both", *(f"{total(found, what):.2f}" for found in counts.values())])
    print_table("What one call alone asks of PostgreSQL", ("", *counts), rows)
    if not statements:
        return
    for name, found in counts.items():
        for process in (WEB, WORKER):
            shapes = [
                [text[:400], f"{times / COUNTED_CALLS:.2f}"]
                for text, times in found[process].shapes.most_common()
                if times >= COUNTED_CALLS / 10
            ]
            print_table(f"{name}, {process}: exchanges of a call", ("sent together", "times"), shapes)


def total(found: dict[str, Any], what: str) -> float:
    return float(found[f"{WEB} {what}"] + found[f"{WORKER} {what}"])


def keep_history(prices: dict[int, list[Price]], counts: dict[str, Any]) -> None:
    """Append this run, after printing how the last one of this machine was."""
    machine = dict(describe_machine())
    line: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine["processor"],
        "sources": machine["sources"],
        "load": machine["load before (1, 5, 15 min)"],
        **{what: round(total(counts, what), 2) for what in ("exchanges", "transactions", "statements")},
    }
    for callers, some in prices.items():
        line |= {f"{part} ms, {callers}": round(_median(some, part), 2) for part in PARTS}
        line[f"sum ms, {callers}"] = round(statistics.median(each.whole for each in some), 2)
        line[f"WAL KB, {callers}"] = round(statistics.median(each.wal for each in some) / 1000, 1)
        line[f"calls/s, {callers}"] = round(statistics.median(each.rate for each in some), 1)
    HISTORY.parent.mkdir(parents=True, exist_ok=True)
    earlier = [json.loads(each) for each in HISTORY.read_text().splitlines()] if HISTORY.exists() else []
    last = next((each for each in reversed(earlier) if each["machine"] == line["machine"]), None)
    if last is not None:
        rows = [[name, str(last.get(name, "")), str(value)] for name, value in line.items() if name != "machine"]
        print_table("The last run on this machine, and this one", ("", "last", "this"), rows)
    with HISTORY.open("a") as file:
        file.write(json.dumps(line) + "\n")


def measure(
    url: str,
    redis_url: str,
    *,
    seconds: float,
    rounds: int = 3,
    against: Path | None = None,
    statements: bool = False,
    timed: bool = True,
    beside: bool = False,
) -> list[list[str]]:
    """``beside``: ContextForge too, where it can be had."""
    sources = {"this": ROOT} | ({"other": against} if against else {})
    counts = {name: count_one_call(url, redis_url, source) for name, source in sources.items()}
    print_counts(counts, statements=statements)
    verdicts = [
        judge_figure(f"{what} a call ≤ {most}", f"{total(counts['this'], what):.1f}", reached=reached)
        for what, most in (("exchanges", EXCHANGES), ("transactions", TRANSACTIONS))
        for reached in [total(counts["this"], what) <= most + 0.1]  # what is periodical falls unevenly
    ]
    if not timed:
        return verdicts
    # Each its own broker: the workers would take each other's messages.
    redis_urls = {name: urlsplit(redis_url)._replace(path=f"/{at}").geturl() for at, name in enumerate(sources)}
    with ExitStack() as stack:
        meters: dict[str, Meter] = {}
        for name, source in sources.items():
            hub = stack.enter_context(run_production(url, redis_urls[name], source))
            meters[name] = stack.enter_context(closing(HubMeter(hub, redis_urls[name])))
        if beside:
            meters |= _open_peer(url, stack)
        found = measure_prices(meters, rounds=rounds, seconds=seconds)
    others = {name: found.pop(name) for name in meters if name not in sources}
    print_prices(found)
    for name, theirs in others.items():
        print_beside(name, theirs, found["this"])
    keep_history(found["this"], counts["this"])
    crowd = found["this"][16]
    whole, wal = (
        statistics.median(each.whole for each in crowd),
        statistics.median(each.wal for each in crowd) / 1000,
    )
    return [
        *verdicts,
        judge_figure(f"processor time a call, 16 callers ≤ {CPU_MS} ms", f"{whole:.1f} ms", reached=whole <= CPU_MS),
        judge_figure(f"WAL a call, 16 callers ≤ {WAL_KB} KB", f"{wal:.1f} KB", reached=wal <= WAL_KB),
    ]


def _open_peer(url: str, stack: ExitStack) -> dict[str, Meter]:
    """By its name; none where it cannot be installed or does not start, which is said."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="toolhub-peer-")))
    try:
        gateway = stack.enter_context(run_contextforge(url, folder))
    except CannotMeasure as error:
        print(f"\nContextForge is NOT measured: {error}")
        return {}
    meter = Meter(gateway.processes, gateway.database, partial(ForgeCaller, gateway))
    return {f"ContextForge {gateway.version}": stack.enter_context(closing(meter))}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.price", description=__doc__)
    parser.add_argument("--seconds", type=float, default=10, help="of each load (default 10)")
    parser.add_argument("--rounds", type=int, default=3, help="of each number of callers (default 3)")
    parser.add_argument("--against", type=Path, help="another checkout, measured in turn with this one")
    parser.add_argument("--statements", action="store_true", help="print each exchange of a call")
    parser.add_argument("--beside", action="store_true", help="ContextForge too, fetched from the package index")
    parser.add_argument("--count", action="store_true", help="count only, time nothing")
    asked = parser.parse_args()
    url, redis_url = os.environ["TOOLHUB_TEST_DATABASE_URL"], os.environ["TOOLHUB_TEST_REDIS_URL"]
    return run_part(
        lambda: measure(
            url,
            redis_url,
            seconds=asked.seconds,
            rounds=asked.rounds,
            against=asked.against.resolve() if asked.against else None,
            statements=asked.statements,
            timed=not asked.count,
            beside=asked.beside,
        ),
        describe_services=lambda: [*describe_database(url), *_describe_other(asked.against)],
    )


def _describe_other(other: Path | None) -> list[tuple[str, str]]:
    if other is None:
        return []
    return [("the other sources", read_output("git", "-C", str(other), "rev-parse", "--short", "HEAD"))]


if __name__ == "__main__":
    sys.exit(main())
