"""Engines: what our PostgreSQL engine saves, held against Django's with the options that bind and prepare on the server.

`python3 -m scripts.provision measure bench.engines` brings a PostgreSQL that waits for its disk. One hub, one database, and a process
for each engine; they do the same in turn, in rounds, each round in another order. Only what one round took is compared: the machine
may be busy with other things. All engines tell the database whom a statement works for, and run the same constant statements.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from bench.figures import ROOT, CannotMeasure, describe_machine, print_table
from bench.hubs import describe_database, make_own_database, run_python, seed_hub

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = "ours: prepared, and sent together"
DJANGO = "bench.django_engine"
ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    OURS: ("kernel.database.postgresql", {}),
    "Django's: nothing set": (DJANGO, {}),
    "Django's: server_side_binding": (DJANGO, {"server_side_binding": True}),
    "Django's: server_side_binding, prepare_threshold 1": (
        DJANGO,
        {"server_side_binding": True, "prepare_threshold": 1},
    ),
}
WORK = {"preflight": 100, "call": 20}  # so many of each in a round
WARM_UP = 3  # rounds that are not counted: caches of processes, and what is prepared


class EngineProcess:
    """A process that works on one engine, and how long each of its rounds took."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.found: dict[str, list[tuple[float, float]]] = {name: [] for name in WORK}
        self.round_trips: dict[str, int] = {}

    def work(self, what: str) -> None:
        took, processor = self._ask(what, WORK[what])
        self.found[what].append((took, processor))

    def count_round_trips(self) -> None:
        self.round_trips = {what: self._ask(what, 0) for what in WORK}

    def _ask(self, what: str, count: int) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what} {count}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise CannotMeasure("A process that works on an engine has ended; what it said stands above.")
        return json.loads(line)


@contextmanager
def run_engine(env: dict[str, str], key: str, engine: str, options: dict[str, Any]) -> Iterator[EngineProcess]:
    env = env | {
        "DJANGO_SETTINGS_MODULE": "bench.engine_settings",
        "BENCH_ENGINE": engine,
        "BENCH_OPTIONS": json.dumps(options),
    }
    command = [sys.executable, "-m", "bench.engine_calls", key]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield EngineProcess(process)
        finally:
            process.kill()


def measure_engines(url: str, rounds: int) -> dict[str, EngineProcess]:
    with make_own_database(url) as env, ExitStack() as stack:
        key = seed_hub(env)
        plain = {"DJANGO_SETTINGS_MODULE": "toolhub.settings"}
        run_python(env | plain, "-m", "bench.engine_calls", key, "--everything-on")
        processes = {
            name: stack.enter_context(run_engine(env, key, engine, options))
            for name, (engine, options) in ENGINES.items()
        }
        names = list(processes)
        for number in range(WARM_UP + rounds):
            first = number % len(names)
            for name in [*names[first:], *names[:first]]:
                for what in WORK:
                    processes[name].work(what)
        for process in processes.values():
            process.count_round_trips()
            process.found = {what: times[WARM_UP:] for what, times in process.found.items()}
        return processes


def print_engines(found: dict[str, EngineProcess]) -> None:
    """The ratio is the median of those of the rounds; in brackets their quartiles."""
    ours = found[OURS].found
    for what in WORK:
        rows = []
        for name, process in found.items():
            row = [name]
            for part in (0, 1):
                times, base = ([each[part] for each in times[what]] for times in (process.found, ours))
                low, middle, high = statistics.quantiles(
                    [each / other for each, other in zip(times, base, strict=True)], n=4
                )
                row += [f"{statistics.median(times):.2f}", f"{middle:.2f} ({low:.2f}–{high:.2f})"]
            rows.append([*row, str(process.round_trips[what])])
        head = (what, "ms", "× ours", "processors, ms", "× ours", "round trips")
        print_table(f"One {what}, median of {len(ours[what])} rounds of {WORK[what]}", head, rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=40, help="in each of which every engine has its turn (default 40)"
    )
    asked = parser.parse_args()
    url = os.environ["TOOLHUB_TEST_DATABASE_URL"]
    try:
        print_table("Machine", ("", ""), [*describe_machine(), *describe_database(url)])
        print_engines(measure_engines(url, asked.rounds))
    except CannotMeasure as error:
        print(f"\nIt could not be measured. {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
