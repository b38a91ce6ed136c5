"""Year: whether what is asked and written every day takes longer in a hub that has a year of facts than in one that has a month.

``python3 -m scripts.provision measure bench.year [CALLS] [ROUNDS]`` fills two databases beside each other, one with a year of CALLS
calls and one with a month at the same rate, and asks the same of both in turn: what else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from statistics import mean, median

from bench.figures import MeasuredTimes, judge_figure, print_table, run_part
from bench.hubs import describe_database, make_own_database, measure_in

CALLS, ROUNDS, TURNS = 200_000, 40, 4
YEAR, MONTH = 365, 30
PROCESSOR = " · processor"  # behind a name: the milliseconds in which a processor worked for it
FOUND = " · found"  # the same: how many facts were on the list
TIMES = 1.2


def measure_year(url: str, calls: int, rounds: int) -> list[list[str]]:
    with make_own_database(url) as month, make_own_database(url) as year:
        for env, days in ((month, MONTH), (year, YEAR)):
            measure_in(env, "bench.evidence_year", "fill", str(calls * days // YEAR), str(days), _file_of(env))
        found: dict[int, dict[str, list[float]]] = {MONTH: {}, YEAR: {}}
        for _ in range(TURNS):
            for env, days in ((month, MONTH), (year, YEAR)):
                asked = measure_in(env, "bench.evidence_year", "ask", _file_of(env), str(max(1, rounds // TURNS)))
                for name, ms in asked.items():
                    found[days].setdefault(name, []).extend(ms)
    return judge_ages(calls, found[MONTH], found[YEAR])


def judge_ages(calls: int, month: dict[str, list[float]], year: dict[str, list[float]]) -> list[list[str]]:
    """By the processor's time of the median, on which other programs fall least. Where what is looked for is rare, a year has more of
    it than a month, and a longer list takes longer: how many facts there were is said.
    """
    rows, verdicts = list[list[str]](), list[list[str]]()
    for name in month:
        if name.endswith((PROCESSOR, FOUND)):
            continue
        young, old = MeasuredTimes(name, month[name]), MeasuredTimes(name, year[name])
        worked = median(year[name + PROCESSOR]) / median(month[name + PROCESSOR])
        times = [f"{each:.1f}" for each in (young.p50, young.p95, old.p50, old.p95)]
        ratios = [f"{each:.2f} ×" for each in (old.p50 / young.p50, old.p95 / young.p95, worked)]
        listed = [f"{mean(found[name + FOUND]):.1f}" for found in (month, year) if name + FOUND in found]
        rows.append([name, *times, *ratios, " → ".join(listed)])
        facts = f", with {listed[1]} facts for {listed[0]}" if listed and listed[0] != listed[1] else ""
        verdicts.append(
            judge_figure(f"{name}: ≤ {TIMES} × that of a month{facts}", ratios[-1], reached=worked <= TIMES)
        )
    print_table(
        f"With the facts of a month and of a year of {calls:,} calls, in turn, milliseconds",
        ("", "month p50", "p95", "year p50", "p95", "p50", "p95", "processor", "facts"),
        rows,
    )
    return verdicts


def _file_of(env: dict[str, str]) -> str:
    return str(Path(env["TOOLHUB_DATA_DIR"], "asked.pickle"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", type=int, nargs="?", default=CALLS)
    parser.add_argument("rounds", type=int, nargs="?", default=ROUNDS)
    asked, url = parser.parse_args(), os.environ["TOOLHUB_TEST_DATABASE_URL"]
    return run_part(
        lambda: measure_year(url, asked.calls, asked.rounds), describe_services=lambda: describe_database(url)
    )


if __name__ == "__main__":
    sys.exit(main())
