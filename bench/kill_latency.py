"""Kill latency: how soon a tool is ended that runs too long, and boxes are gone whose worker was killed.

``python -m bench.kill_latency`` is such a worker: it has one box that waits and one that is busy, and says so.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

from bench.figures import ROOT, CannotMeasure, MeasuredTimes
from bench.sandbox_harness import TRIVIAL, BenchTool, make_call, open_sandbox
from invocations.sandbox.base import Limits, Profile, RunStatus
from invocations.sandbox.docker import INSTANCE
from invocations.sandbox.engine import Engine

WALL_MS = 300
_SLEEPS = "import time\ndef run(): time.sleep(60)"
_SPINS = "def run():\n    while True: pass"
_FORKS = "import os\ndef run():\n    while True:\n        try: os.fork()\n        except OSError: pass"
LATE = {"sleeping": _SLEEPS, "spinning": _SPINS, "forking without end": _FORKS}
_PATIENCE_S = 10


def measure_overruns(rounds: int) -> list[MeasuredTimes]:
    """Milliseconds that a tool got more than it may, until its caller knew; from the moment at which it began."""
    limits = Limits(wall_ms=WALL_MS)
    found = []
    with open_sandbox() as where:
        for name, source in LATE.items():
            tool, over = BenchTool.of(source), []
            for _ in range(rounds):
                begun = time.perf_counter()
                outcome = where.run(Profile(limits, isolation="shared"), tool.call())
                took = (time.perf_counter() - begun) * 1000
                if outcome.status is not RunStatus.TIMED_OUT:
                    raise CannotMeasure(f"A tool that runs too long ended as {outcome.status}: {outcome.error_message}")
                ran_from = next(begin for step, begin, _ in outcome.steps if step == "run")
                over.append(took - ran_from - WALL_MS)
            found.append(MeasuredTimes(f"past the limit of {WALL_MS} ms, {name}", over))
    return found


def measure_worker_kills(kills: int) -> tuple[MeasuredTimes, int]:
    """(milliseconds from the death of a worker until its boxes were gone, boxes left at the end)"""
    took, instances = [], []
    with closing(Engine()) as engine:
        for _ in range(kills):
            worker = subprocess.Popen(
                [sys.executable, "-m", "bench.kill_latency"], cwd=ROOT, stdout=subprocess.PIPE, text=True
            )
            assert worker.stdout is not None
            with worker.stdout as output:
                instances.append(output.readline().strip())
                if output.readline().strip() != "busy":
                    raise CannotMeasure("A worker that was to be killed did not get to work.")
            worker.send_signal(signal.SIGKILL)
            begun = time.perf_counter()
            while engine.find({INSTANCE: instances[-1]}) and time.perf_counter() - begun < _PATIENCE_S:
                time.sleep(0.005)
            took.append((time.perf_counter() - begun) * 1000)
            worker.wait()
        left = sum(len(engine.find({INSTANCE: instance})) for instance in instances)
    return MeasuredTimes("worker killed → its boxes gone", took), left


def _work() -> None:
    with open_sandbox() as where:
        print(where._instance, flush=True)
        make_call(where, BenchTool.of(TRIVIAL), "shared")
        tool = BenchTool.of("import time\ndef run():\n    print('here', flush=True)\n    time.sleep(600)")
        busy = threading.Event()
        threading.Thread(
            target=lambda: where.run(
                Profile(Limits(wall_ms=600_000), isolation="fresh"), tool.call(), lambda _event: busy.set()
            ),
            daemon=True,
        ).start()
        print("busy" if busy.wait(30) else "idle", flush=True)
        time.sleep(600)


if __name__ == "__main__":
    _work()
