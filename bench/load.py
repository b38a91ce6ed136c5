"""Load: how many calls a second four callers get, and what a warm box holds while it waits."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from bench.figures import CannotMeasure, MeasuredTimes
from bench.sandbox_harness import TRIVIAL, BenchTool, make_call, open_sandbox
from invocations.sandbox.docker import INSTANCE
from invocations.sandbox.engine import Engine

CALLERS = 4
BOXES = 8
_PAGES = ("/sys/fs/cgroup/memory/docker/{}", "/sys/fs/cgroup/system.slice/docker-{}.scope", "/sys/fs/cgroup/docker/{}")
_MIB = 1024 * 1024


def measure_throughput(seconds: float, level: str = "shared") -> tuple[float, MeasuredTimes]:
    """(calls a second, milliseconds of each), all callers with one tool of one tenant."""
    tool = BenchTool.of(TRIVIAL)
    with open_sandbox() as where, ThreadPoolExecutor(CALLERS) as callers:

        def call_until(moment: float) -> list[float]:
            took = []
            while time.perf_counter() < moment:
                begun = time.perf_counter()
                make_call(where, tool, level)
                took.append((time.perf_counter() - begun) * 1000)
            return took

        def all_of_them(lasts: float) -> list[float]:
            until = time.perf_counter() + lasts
            return [ms for found in callers.map(call_until, [until] * CALLERS) for ms in found]

        all_of_them(3)  # until every caller has a box
        begun = time.perf_counter()
        took = all_of_them(seconds)
        return len(took) / (time.perf_counter() - begun), MeasuredTimes(f"{level}, {CALLERS} callers", took)


def measure_memory(level: str = "shared") -> list[tuple[float, float]]:
    """MiB of each of some warm boxes: (charged to its control group and not to be had back, proportional share of its shim)."""
    tool = BenchTool.of(TRIVIAL)
    with open_sandbox() as where, closing(Engine()) as engine:
        boxes = set()
        for number in range(BOXES):
            for _ in range(5):
                boxes.add(make_call(where, tool, level, tenant=f"tenant-{number}").box)
        time.sleep(1)
        alive = {found["Id"] for found in engine.find({INSTANCE: where._instance}) if found["State"] == "running"}
        return [(_charged(box), _shim(box)) for box in sorted(boxes & alive)]


def _charged(box: str) -> float:
    for place in (Path(pattern.format(box)) for pattern in _PAGES):
        for usage, inactive in (("memory.usage_in_bytes", "total_inactive_file"), ("memory.current", "inactive_file")):
            if (place / usage).exists():
                stat = dict(line.split() for line in (place / "memory.stat").read_text().splitlines())
                return (int((place / usage).read_text()) - int(stat[inactive])) / _MIB
    raise CannotMeasure("The control group of a box is nowhere that is known. Does the engine run on another machine?")


def _shim(box: str) -> float:
    for place in Path("/proc").iterdir():
        if not place.name.isdigit():
            continue
        try:
            words = (place / "cmdline").read_bytes().split(b"\0")
            if box.encode() in words and b"shim" in words[0]:
                lines = (place / "smaps_rollup").read_text().splitlines()
                return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
        except OSError:
            continue
    raise CannotMeasure("The shim of a box cannot be looked into. It belongs to root: run the benchmark as root.")
