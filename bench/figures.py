"""Figures: how measured times are said, as quantiles, tables and facts about the machine."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT = Path(__file__).resolve().parent.parent


class CannotMeasure(Exception):
    """Something that is needed is not there. The message says what to do."""


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """Milliseconds of one thing, measured many times."""

    name: str
    ms: Sequence[float]

    @property
    def p50(self) -> float:
        return statistics.median(self.ms)

    @property
    def p95(self) -> float:
        """The smallest value that 95 of 100 do not exceed (nearest rank, so that it is one that was measured)."""
        return sorted(self.ms)[max(0, -(-95 * len(self.ms) // 100) - 1)]

    def row(self, *more: str) -> list[str]:
        return [self.name, str(len(self.ms)), f"{min(self.ms):.2f}", f"{self.p50:.2f}", f"{self.p95:.2f}", *more]


def print_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[column]) for line in [head, *rows]) for column in range(len(head))]
    print(f"\n{title}")
    for line in [*([head, ["-" * width for width in widths]] if any(head) else []), *rows]:
        cells = [
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip(), flush=True)


def read_output(*command: str) -> str:
    """What a program prints, or "unknown"."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe_machine() -> list[tuple[str, str]]:
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    changed = " with changes" if read_output("git", "status", "--porcelain") not in ("", "unknown") else ""
    return [
        ("processor", f"{os.cpu_count()} × {_processor()}"),
        ("memory", f"{gib:.1f} GiB"),
        ("load before (1, 5, 15 min)", load),
        ("system", f"{platform.system()} {platform.release()}"),
        ("Python", platform.python_version()),
        ("Docker engine", read_output("docker", "version", "--format", "{{.Server.Version}}")),
        ("sources", read_output("git", "rev-parse", "--short", "HEAD") + changed),
    ]


def judge_figure(what: str, measured: str, *, reached: bool) -> list[str]:
    return [what, measured, "reached" if reached else "NOT reached"]


def run_part(
    measure: Callable[[], list[list[str]]], *, describe_services: Callable[[], Iterable[tuple[str, str]]] = list
) -> int:
    """Measure one part by itself and print on which machine, with which services, and how its figures are judged; the exit status."""
    try:
        print_table("Machine", ("", ""), [*describe_machine(), *describe_services()])
        verdicts = measure()
    except CannotMeasure as error:
        print(f"\nIt could not be measured. {error}", file=sys.stderr)
        return 1
    print_table("Acceptance figures", ("figure", "measured", ""), verdicts)
    return 0
