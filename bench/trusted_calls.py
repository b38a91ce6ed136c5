"""Trusted calls: what one costs, in a process that stood ready and in one that is started for it.

The rest of a governed call (decision, facts, queue) is the same as for any tool and is measured elsewhere.
"""

from __future__ import annotations

import time

from bench.figures import CannotMeasure, MeasuredTimes, print_table
from bench.sandbox_harness import RESULT, TRIVIAL, BenchTool
from invocations.direct_runs.pool import DirectSandbox
from invocations.sandbox.base import Profile

READY, STARTED = "trusted call, direct, process ready", "trusted call, direct, process started for it"
_SETTLE_S = 0.1  # the next process starts meanwhile


def measure_trusted_calls(rounds: int) -> list[MeasuredTimes]:
    """In turn, so that load from elsewhere falls on both alike."""
    pools = {READY: DirectSandbox(), STARTED: DirectSandbox(ready=0)}
    found: dict[str, list[float]] = {name: [] for name in pools}
    try:
        for number in range(rounds + 1):
            for name, pool in pools.items():
                took = _once(pool)
                if number:  # the first of each warms up
                    found[name].append(took)
    finally:
        for pool in pools.values():
            pool.close()
    return [MeasuredTimes(name, ms) for name, ms in found.items()]


def _once(pool: DirectSandbox) -> float:
    time.sleep(_SETTLE_S)
    call = BenchTool.of(TRIVIAL).call()
    begun = time.perf_counter()
    outcome = pool.run(Profile(), call)
    took = (time.perf_counter() - begun) * 1000
    if outcome.value != RESULT:
        raise CannotMeasure(f"A direct call ended as {outcome.status}: {outcome.error_message} {outcome.value}")
    return took


if __name__ == "__main__":
    print_table(
        "A call of a trusted tool",
        ("milliseconds", "N", "min", "p50", "p95"),
        [each.row() for each in measure_trusted_calls(30)],
    )
