"""Is a tool's code loaded in a time of its own, once for all who wait for it, and whoever gives up meanwhile?"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from invocations.direct.pool import DirectPool
from invocations.sandbox.base import BoxKey, Limits, Profile, Sandbox, Status
from invocations.sandbox.fake import FakeSandbox
from invocations.sandbox.slots import Caps
from tests.boxes import call_of, docker_sandbox, package_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from invocations.sandbox.base import Outcome, SandboxCall
    from invocations.sandbox.docker import DockerSandbox

pytestmark = pytest.mark.req("SVC-7", "TOOLS-24")
QUICK = Limits(wall_ms=1_500, cpu_s=1, idle_ms=1_000)
USES = "import slow\ndef run(): return slow.N"
SLOW = "import time\nuntil = time.process_time() + {spends}\ntime.sleep({sleeps})\nwhile time.process_time() < until: pass\nN = 5\n"
SANDBOXES: dict[str, Callable[[float], Sandbox]] = {
    "docker": lambda load_s: docker_sandbox(caps=Caps(load_s=load_s)),
    "fake": lambda load_s: FakeSandbox(load_s=load_s),
    "direct": lambda load_s: DirectPool(load_s=load_s),
}


def using(folder: Path, *, sleeps: float, spends: float = 0.0) -> SandboxCall:
    """A call of a tool that imports a slow module of others."""
    folder.chmod(0o755)
    (dependencies := folder / "deps").mkdir(mode=0o755)
    (dependencies / "slow.py").write_text(SLOW.format(sleeps=sleeps, spends=spends))
    key = BoxKey("tenant", USES, dependencies=str(sleeps))
    return replace(call_of(package_of(folder, main=USES)), dependencies=dependencies, key=key)


def steps_of(outcome: Outcome) -> dict[str, float]:
    took: dict[str, float] = {}
    for name, begin, end in outcome.steps:
        took[name] = took.get(name, 0.0) + end - begin
    return took


@pytest.mark.parametrize("kind", SANDBOXES)
def test_what_a_tool_imports_is_not_taken_from_its_own_time(kind: str, tmp_path: Path) -> None:
    sandbox = SANDBOXES[kind](30)
    source = SLOW.format(sleeps=2.5, spends=1.5) + "def run():\n    time.sleep(0.2)\n    return N"

    outcome = sandbox.run(Profile(QUICK), call_of(package_of(tmp_path, main=source)))
    sandbox.close()

    assert (outcome.status, outcome.value) == (Status.OK, 5), outcome
    assert steps_of(outcome)["load"] > 2_500 > 1_500 > steps_of(outcome)["run"], outcome.steps


@pytest.mark.parametrize("kind", SANDBOXES)
def test_a_tool_that_is_never_imported_ends_with_the_time_of_a_load(kind: str, tmp_path: Path) -> None:
    sandbox = SANDBOXES[kind](1.5)

    outcome = sandbox.run(Profile(QUICK), call_of(package_of(tmp_path, main="import time\ntime.sleep(3600)")))
    sandbox.close()

    assert outcome.status is Status.LOAD_TIMED_OUT, outcome


def test_its_own_time_still_ends_a_tool_that_was_slow_to_load(tmp_path: Path) -> None:
    sandbox = docker_sandbox()
    source = SLOW.format(sleeps=2.0, spends=0) + "def run():\n    while True: pass"

    spins = sandbox.run(Profile(replace(QUICK, wall_ms=20_000, idle_ms=0)), call_of(package_of(tmp_path, main=source)))
    silent = sandbox.run(Profile(QUICK), call_of(package_of(tmp_path, main=source.replace("pass", "time.sleep(9)"))))
    sandbox.close()

    assert (spins.status, spins.error_code) == (Status.TIMED_OUT, "processor"), spins
    assert (silent.status, silent.error_code) == (Status.TIMED_OUT, "idle"), silent


@pytest.mark.parametrize("level", ["shared", "fresh"])
def test_a_burst_of_callers_leads_to_one_load(
    level: str, sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    sandbox = sandbox_of(caps=Caps(ready=2))
    call = using(tmp_path, sleeps=3)

    def once(number: int) -> Outcome:
        return sandbox.run(Profile(QUICK, isolation=level), replace(call, name=f"call-{number}"))

    with ThreadPoolExecutor(8) as callers:
        outcomes = list(callers.map(once, range(8)))

    assert [outcome.value for outcome in outcomes] == [5] * 8, outcomes
    assert len({outcome.box for outcome in outcomes}) == 1
    snapshot = sandbox.snapshot()
    assert snapshot is not None
    assert snapshot.loads == {"ok": 1}
    assert all(steps_of(outcome)["load"] > 2_000 > steps_of(outcome)["run"] for outcome in outcomes[:1]), outcomes[
        0
    ].steps


def test_a_load_outlives_the_caller_who_gives_up(sandbox_of: Callable[..., DockerSandbox], tmp_path: Path) -> None:
    sandbox = sandbox_of()
    call = using(tmp_path, sleeps=4)
    loading = threading.Event()
    begin = sandbox._loader.begin
    sandbox._loader.begin = lambda *about: (begin(*about), loading.set())[0]  # type: ignore[method-assign,func-returns-value]

    with ThreadPoolExecutor(1) as callers:
        first = callers.submit(sandbox.run, Profile(QUICK), replace(call, name="gives-up"))
        assert loading.wait(60)
        sandbox.kill("gives-up")
        gave_up = first.result(timeout=3)  # it does not wait for the load
    second = sandbox.run(Profile(QUICK), replace(call, name="stays"))

    assert gave_up.status is Status.CANCELLED
    assert gave_up.nothing_ran
    assert (second.status, second.value) == (Status.OK, 5), second
    snapshot = sandbox.snapshot()
    assert snapshot is not None
    assert snapshot.loads == {"ok": 1}


def test_who_calls_again_at_once_after_a_load_that_timed_out_starts_no_other(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    sandbox = sandbox_of(caps=Caps(load_s=1.5))
    call = using(tmp_path, sleeps=3600)

    outcomes = [sandbox.run(Profile(QUICK), replace(call, name=f"call-{number}")) for number in range(4)]

    assert {outcome.status for outcome in outcomes} == {Status.LOAD_TIMED_OUT}, outcomes
    assert all(outcome.nothing_ran for outcome in outcomes)
    assert all(0 < outcome.error_details["retry_after_s"] <= 30 for outcome in outcomes)
    snapshot = sandbox.snapshot()
    assert snapshot is not None
    assert snapshot.loads == {"late": 1}
