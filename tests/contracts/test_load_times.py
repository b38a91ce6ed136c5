"""Load times: is a tool's code loaded in a time of its own, once for all who wait for it, and whoever gives up meanwhile?"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from invocations.direct_runs.pool import DirectSandbox
from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus, Sandbox
from invocations.sandbox.fake import FakeSandbox
from invocations.sandbox.isolation.container import build_container_config
from invocations.sandbox.pool.slots import PoolCaps
from tests.support.parameters import try_one_in
from tests.support.sandboxes import call_of, docker_sandbox, package_of
from unitools.publisher import build_publication
from unitools.universe_loader import load_universe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.base import RunOutcome, SandboxCall
    from invocations.sandbox.docker import DockerSandbox

QUICK = Limits(wall_ms=1_500, cpu_s=1, idle_ms=1_000)
USES = "import slow\ndef run(): return slow.N"
SLOW = "import time\nuntil = time.process_time() + {spends}\ntime.sleep({sleeps})\nwhile time.process_time() < until: pass\nN = 5\n"
SANDBOXES: dict[str, Callable[[float], Sandbox]] = {
    "docker": lambda load_s: docker_sandbox(caps=PoolCaps(load_s=load_s)),
    "fake": lambda load_s: FakeSandbox(load_s=load_s),
    "direct": lambda load_s: DirectSandbox(load_s=load_s),
}


def using(folder: Path, *, sleeps: float, spends: float = 0.0) -> SandboxCall:
    """A call of a tool that imports a slow module of others."""
    folder.chmod(0o755)
    (dependencies := folder / "deps").mkdir(mode=0o755)
    (dependencies / "slow.py").write_text(SLOW.format(sleeps=sleeps, spends=spends))
    key = BoxKey("tenant", USES, dependencies=str(sleeps))
    return replace(call_of(package_of(folder, main=USES)), dependencies=dependencies, key=key)


def steps_of(outcome: RunOutcome) -> dict[str, float]:
    took: dict[str, float] = {}
    for name, begin, end in outcome.steps:
        took[name] = took.get(name, 0.0) + end - begin
    return took


@pytest.mark.req("SVC-7")
@pytest.mark.parametrize("kind", SANDBOXES)
def test_what_a_tool_imports_is_not_taken_from_its_own_time(kind: str, tmp_path: Path) -> None:
    sandbox = SANDBOXES[kind](30)
    source = SLOW.format(sleeps=2.5, spends=1.5) + "def run():\n    time.sleep(0.2)\n    return N"

    outcome = sandbox.run(Profile(QUICK), call_of(package_of(tmp_path, main=source)))
    sandbox.close()

    assert (outcome.status, outcome.value) == (RunStatus.OK, 5), outcome
    assert steps_of(outcome)["load"] > 2_500 > 1_500 > steps_of(outcome)["run"], outcome.steps


@pytest.mark.req("SVC-7", "TOOLS-24")
@pytest.mark.parametrize("kind", SANDBOXES)
def test_a_tool_that_is_never_imported_ends_with_the_time_of_a_load(kind: str, tmp_path: Path) -> None:
    sandbox = SANDBOXES[kind](1.5)

    outcome = sandbox.run(Profile(QUICK), call_of(package_of(tmp_path, main="import time\ntime.sleep(3600)")))
    sandbox.close()

    assert outcome.status is RunStatus.LOAD_TIMED_OUT, outcome


@pytest.mark.req("SVC-7")
def test_its_own_time_still_ends_a_tool_that_was_slow_to_load(tmp_path: Path) -> None:
    sandbox = docker_sandbox()
    source = SLOW.format(sleeps=2.0, spends=0) + "def run():\n    while True: pass"

    spins = sandbox.run(Profile(replace(QUICK, wall_ms=20_000, idle_ms=0)), call_of(package_of(tmp_path, main=source)))
    silent = sandbox.run(Profile(QUICK), call_of(package_of(tmp_path, main=source.replace("pass", "time.sleep(9)"))))
    sandbox.close()

    assert (spins.status, spins.error_code) == (RunStatus.TIMED_OUT, "processor"), spins
    assert (silent.status, silent.error_code) == (RunStatus.TIMED_OUT, "idle"), silent


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("level", ["shared", "fresh"])
def test_a_burst_of_callers_leads_to_one_load(
    level: str, sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    sandbox = sandbox_of(caps=PoolCaps(ready=2))
    call = using(tmp_path, sleeps=3)

    def once(number: int) -> RunOutcome:
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


@pytest.mark.req("SVC-6")
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

    assert gave_up.status is RunStatus.CANCELLED
    assert gave_up.nothing_ran
    assert (second.status, second.value) == (RunStatus.OK, 5), second
    snapshot = sandbox.snapshot()
    assert snapshot is not None
    assert snapshot.loads == {"ok": 1}


@pytest.mark.req("SVC-7")
def test_who_calls_again_at_once_after_a_load_that_timed_out_starts_no_other(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    sandbox = sandbox_of(caps=PoolCaps(load_s=1.5))
    call = using(tmp_path, sleeps=3600)

    outcomes = [sandbox.run(Profile(QUICK), replace(call, name=f"call-{number}")) for number in range(4)]

    assert {outcome.status for outcome in outcomes} == {RunStatus.LOAD_TIMED_OUT}, outcomes
    assert all(outcome.nothing_ran for outcome in outcomes)
    assert all(0 < outcome.error_details["retry_after_s"] <= 30 for outcome in outcomes)
    snapshot = sandbox.snapshot()
    assert snapshot is not None
    assert snapshot.loads == {"late": 1}


@pytest.mark.req("SVC-7")
@pytest.mark.parametrize("own", ["import time\ntime.sleep(60)", "while True: pass"])
def test_what_a_call_of_a_loaded_box_does_at_import_has_little_time(
    own: str, sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invocations.sandbox.boxes.payloads.IMPORT_S", 2.0)
    sandbox = sandbox_of()
    call = replace(call_of(package_of(tmp_path, main=f"{own}\ndef run(): return 1")), key=BoxKey("tenant", own))

    ended = sandbox.run(Profile(QUICK), call)
    again = sandbox.run(Profile(QUICK), replace(call, name="again"))

    assert (ended.status, ended.error_details) == (RunStatus.LOAD_TIMED_OUT, {"import_s": 2.0}), ended
    assert not ended.nothing_ran
    assert 1_500 < steps_of(ended)["load"] < 20_000
    assert again.status is RunStatus.LOAD_TIMED_OUT, "Another box was loaded for nothing."
    assert again.nothing_ran


@pytest.mark.req("SVC-7")
def test_what_is_never_imported_in_a_branch_that_is_not_taken_ends_no_call(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invocations.sandbox.pool.loads.REST_S", 0.0)
    sandbox = sandbox_of(caps=PoolCaps(load_s=2))
    call = using(tmp_path, sleeps=3600)
    lazy = package_of(tmp_path / "lazy", main="def run(rare=False):\n    if rare: import slow\n    return 7")

    ends = [sandbox.run(Profile(QUICK), replace(call, name=f"call-{n}", package=lazy)) for n in range(2)]

    assert [end.status for end in ends] == [RunStatus.LOAD_TIMED_OUT, RunStatus.OK], ends


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Boxes have one processor, and others want it all the time."""
    processor = min(os.sched_getaffinity(0))

    def pinned(**about: Any) -> dict[str, Any]:
        config = build_container_config(**about)
        config["HostConfig"]["CpusetCpus"] = str(processor)
        return config

    monkeypatch.setattr("invocations.sandbox.isolation.container.build_container_config", pinned)
    spins = f"import os\nos.sched_setaffinity(0, {{{processor}}})\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-I", "-S", "-c", spins]) for _ in range(4)]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.req("SVC-7")
@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize("level", try_one_in(2, ["shared", "fresh"]))
def test_a_busy_machine_ends_no_call_that_imports_its_own_modules(
    level: str, sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invocations.sandbox.boxes.payloads.IMPORT_S", 2.0)
    own = SLOW.format(sleeps=0, spends=1.3) + "def run(): return N"
    call = replace(call_of(package_of(tmp_path, main=own)), key=BoxKey("tenant", own))

    outcome = sandbox_of().run(Profile(replace(QUICK, wall_ms=60_000, idle_ms=0), isolation=level), call)

    assert (outcome.status, outcome.value) == (RunStatus.OK, 5), outcome
    assert steps_of(outcome)["load"] > 2_000, "The machine was not busy, so this shows nothing."


@pytest.mark.req("SVC-7")
@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize("own", ["import time\ntime.sleep(600)", "while True: pass"])
def test_a_busy_machine_gives_no_time_to_who_sleeps_or_spins(
    own: str, sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("invocations.sandbox.boxes.payloads.IMPORT_S", 1.0)
    call = replace(call_of(package_of(tmp_path, main=f"{own}\ndef run(): return 1")), key=BoxKey("tenant", own))

    ended = sandbox_of(caps=PoolCaps(load_s=300)).run(Profile(QUICK), call)

    assert (ended.status, ended.error_details) == (RunStatus.LOAD_TIMED_OUT, {"import_s": 1.0}), ended


@pytest.mark.usefixtures("crowded")
@pytest.mark.req("SVC-7", "UNI-5")
@pytest.mark.parametrize("level", try_one_in(2, ["shared", "fresh"]))
def test_a_universe_on_a_busy_machine_is_loaded_once_and_answers_all_who_wait(
    level: str, sandbox_of: Callable[..., DockerSandbox], sdk_dependencies: Path, tmp_path: Path
) -> None:
    made = build_publication(load_universe(Path(__file__).resolve().parents[1] / "universes" / "shapes.py"))
    answers = next(each for each in made.manifests if made.names[each["id"]] == "adds")["implementation"]
    with zipfile.ZipFile(memory := io.BytesIO(), "w") as archive:
        for name, content in sorted(made.files.items()):
            archive.writestr(name, content)
    call = call_of(memory.getvalue(), module=answers["module"], entry=answers["entry"], a=1)
    call = replace(call, dependencies=sdk_dependencies, key=BoxKey("tenant", "shapes", dependencies="sdk"))
    sandbox = sandbox_of(caps=PoolCaps(load_s=60))

    with ThreadPoolExecutor(4) as callers:
        calls = [replace(call, name=f"call-{number}", config={"rate": "1.25"}) for number in range(4)]
        outcomes = list(callers.map(lambda each: sandbox.run(Profile(Limits(), isolation=level), each), calls))

    assert [outcome.status for outcome in outcomes] == [RunStatus.OK] * 4, outcomes
    assert len({outcome.box for outcome in outcomes}) == 1
    snapshot = sandbox.snapshot()
    assert snapshot is not None
    assert snapshot.loads == {"ok": 1}
