"""Soak of the pool: whether it stays right when it runs for long, with tools among the others that mean harm.

Many calls by several callers at once, of several tenants and tools at all levels, one in twenty hostile. Every call has
a canary of its own. Nothing may be wrong, nothing may be seen by another, and nothing may grow. Exit status 2 when
something did, 1 when it could not be found out.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import random
import re
import sys
import tempfile
import threading
import time
import uuid
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import ROOT, CannotMeasure, MeasuredTimes, describe_machine, print_table
from bench.growth import GrowthLog
from bench.sandbox_harness import BenchTool, open_sandbox
from invocations.sandbox.base import Limits, Profile, RunEvent, RunOutcome, RunStatus
from tests.attacks.catalogue import (
    EXHAUSTION,
    FORGING,
    KERNEL,
    LEAKING,
    LINGERING,
    POISONING,
    SOON,
    SUPERVISOR,
    USUAL,
    Attack,
)
from unitools.packages import build_zip

if TYPE_CHECKING:
    from invocations.sandbox.docker import DockerSandbox

TENANTS = ("acme", "beta", "corp", "delta")
TOOLS = 3
LEVELS = {"shared": 50, "fresh": 44, "single": 5, "cold": 1}  # per cent
HONEST = {"answers": 80, "writes": 17, "searches": 3}
LIMITS = Limits(wall_ms=8_000)  # an honest call takes milliseconds; on a machine with much else to do, a second
# Without those that fill all of a time limit or of a memory limit: they are in the attack suite.
TOO_LONG = {"exhaustion.timers", "exhaustion.memory_by_children", "exhaustion.maps", "exhaustion.huge_result"}
ATTACKS = [
    attack
    for attack in (*EXHAUSTION, *FORGING, *LEAKING, *LINGERING, *POISONING, *SUPERVISOR, *KERNEL)
    if attack.limits == USUAL and attack.name not in TOO_LONG
]
SLOW_ATTACKS = [attack for attack in (*EXHAUSTION, *FORGING, *SUPERVISOR) if attack.limits == SOON]
SLOW_SHARE = 0.02  # of the hostile calls: each takes all of its time
STOPPED = (RunStatus.TIMED_OUT, RunStatus.LOG_FLOOD, RunStatus.OUT_OF_MEMORY)  # what any attack may end as
_CANARY = re.compile(r"canary-[0-9a-f]{32}")


@dataclass
class PoolTally:
    """What came of the calls."""

    wrong: list[str] = field(default_factory=list)
    took: dict[str, list[float]] = field(default_factory=dict)
    ends: Counter[str] = field(default_factory=Counter)
    given_up: int = 0  # boxes after an honest call
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, ms: float, outcome: RunOutcome, wrong: str) -> None:
        with self.lock:
            self.took.setdefault(kind, []).append(ms)
            self.ends[f"{kind}: {outcome.status}"] += 1
            self.given_up += kind.startswith("honest") and not outcome.clean
            if wrong:
                self.wrong.append(f"{kind}: {wrong}")


def _tools() -> list[BenchTool]:
    """The attacks and the honest functions in one package, so that they come to the same boxes."""
    whole = build_zip(ROOT / "tests/attacks/hostile")
    found = []
    for number in range(TOOLS):
        memory = io.BytesIO(whole)
        with zipfile.ZipFile(memory, "a") as archive:
            archive.writestr("hostile/which.py", f"NUMBER = {number}\n")
        package = memory.getvalue()
        found.append(BenchTool(package, "sha256:" + hashlib.sha256(package).hexdigest()))
    return found


class PoolSoak:
    def __init__(self, where: DockerSandbox, *, hostile: float, seed: int) -> None:
        self.found = PoolTally()
        self._where, self._hostile, self._tools = where, hostile, _tools()
        self._seed = seed

    def one(self, number: int) -> None:
        chance = random.Random(f"{self._seed}-{number}")
        level = chance.choices(list(LEVELS), list(LEVELS.values()))[0]
        canary = f"canary-{uuid.UUID(int=chance.getrandbits(128)).hex}"
        if chance.random() < self._hostile:
            attacks = SLOW_ATTACKS if chance.random() < SLOW_SHARE else ATTACKS
            self._attack(chance.choice(attacks), level, chance, canary)
        else:
            self._honest(chance.choices(list(HONEST), list(HONEST.values()))[0], level, chance, canary, number)

    def _run(
        self, module: str, entry: str, level: str, chance: random.Random, canary: str, arguments: str
    ) -> tuple[RunOutcome, float, str]:
        """(the outcome, milliseconds, what it has said that another call knew); half of the calls are listened to."""
        tool = chance.choice(self._tools)
        call = tool.call(
            chance.choice(TENANTS), arguments.encode(), secrets={"CANARY": canary}, config={"canary": canary}
        )
        call = replace(call, module=f"hostile.{module}", entry=entry)
        events: list[RunEvent] = []
        begun = time.perf_counter()
        outcome = self._where.run(
            Profile(LIMITS, isolation=level), call, events.append if chance.random() < 0.5 else None
        )
        ms = (time.perf_counter() - begun) * 1000
        said = f"{outcome.value} {outcome.stdout} {outcome.stderr} {outcome.error_message} {outcome.error_details} {events}"
        return outcome, ms, ", ".join(set(_CANARY.findall(said)) - {canary})

    def _honest(self, entry: str, level: str, chance: random.Random, canary: str, number: int) -> None:
        arguments = f'{{"canary": "{canary}", "number": {number}}}'
        outcome, ms, foreign = self._run("honest", entry, level, chance, canary, arguments)
        right = outcome.status is RunStatus.OK and outcome.value == [canary, number * 2 + 1, True, []]
        wrong = "" if right else f"{entry} came out as {outcome}"
        self.found.add(f"honest, {level}", ms, outcome, foreign or wrong)

    def _attack(self, attack: Attack, level: str, chance: random.Random, canary: str) -> None:
        module, _, entry = attack.name.rpartition(".")
        arguments = f'{{"canary": "{canary}"}}' if entry == "leave_a_secret" else "{}"
        outcome, ms, foreign = self._run(module, entry, level, chance, canary, arguments)
        wrong = "" if outcome.status in (*attack.ends, *STOPPED) else f"{attack.name} ended as {outcome}"
        if outcome.status is RunStatus.OK and outcome.value:
            wrong = f"{attack.name} got {outcome.value}"
        self.found.add(f"hostile, {level}", ms, outcome, foreign or wrong)


def run_soak(calls: int, callers: int, hostile: float, minutes: float, seed: int) -> int:
    growth = GrowthLog()
    until = time.monotonic() + minutes * 60
    done = 0
    with tempfile.TemporaryDirectory(prefix="toolhub-soak-") as folder:
        with open_sandbox(run_dir=Path(folder, "run")) as where, ThreadPoolExecutor(callers) as pool:
            growth.watch(where, Path(folder))
            run = PoolSoak(where, hostile=hostile, seed=seed)
            while done < calls and time.monotonic() < until and len(run.found.wrong) < 100:
                some = range(done, min(done + 500, calls))
                list(pool.map(run.one, some))
                done = some.stop
                growth.look(done)
                left = until - time.monotonic()
                print(f"{done} calls, {len(run.found.wrong)} wrong, {left / 60:.1f} minutes left", flush=True)
        growth.end()
    found = run.found
    rows = [MeasuredTimes(kind, ms).row() for kind, ms in sorted(found.took.items())]
    print_table(f"{done} calls by {callers} callers, milliseconds", ("calls", "N", "min", "p50", "p95"), rows)
    print_table("How they ended", ("", "calls"), [[name, str(count)] for name, count in sorted(found.ends.items())])
    print_table("What grew", GrowthLog.HEAD, growth.rows())
    for sentence in found.wrong[:20]:
        print(f"WRONG  {sentence[:1000]}")
    verdicts = [
        ["calls made", f"{done} of {calls}", "reached" if done == calls else "NOT reached"],
        [
            "wrong results and bytes of another call: 0",
            str(len(found.wrong)),
            "NOT reached" if found.wrong else "reached",
        ],
        [
            "boxes given up after an honest call ≤ 1 %",
            str(found.given_up),
            "reached" if found.given_up <= done / 100 else "NOT reached",
        ],
        *growth.verdicts(),
    ]
    print_table("Verdict", ("figure", "measured", ""), verdicts)
    return 2 if any(line[-1] == "NOT reached" for line in verdicts) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.soak_pool", description=__doc__)
    parser.add_argument("--calls", type=int, default=20_000, help="(default 20000)")
    parser.add_argument("--callers", type=int, default=4, help="at the same time (default 4)")
    parser.add_argument("--hostile", type=float, default=0.05, help="share of the calls (default 0.05)")
    parser.add_argument("--minutes", type=float, default=30, help="it takes no longer (default 30)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="the same calls again")
    asked = parser.parse_args()
    print_table("Machine", ("", ""), [*describe_machine(), ("seed", str(asked.seed))])
    try:
        return run_soak(asked.calls, asked.callers, asked.hostile, asked.minutes, asked.seed)
    except CannotMeasure as error:
        print(f"\nIt could not be found out. {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
