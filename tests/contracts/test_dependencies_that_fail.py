"""Dependencies that fail: what becomes of a call whose dependencies do harm as they are imported? The same at every level."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.pool.slots import PoolCaps
from tests.support.sandboxes import call_of, docker_sandbox, package_of
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from invocations.sandbox.base import RunOutcome, SandboxCall
    from invocations.sandbox.docker import DockerSandbox

USES = "import harmful\ndef run(): return harmful.N"
SMALL = Limits(wall_ms=1_500, memory_bytes=64 << 20)
HARM = {
    "exits": ("import os\nos._exit(3)", RunStatus.EXITED),
    "fills its memory": ("held = []\nwhile True: held.append(bytearray(1 << 20))", RunStatus.OUT_OF_MEMORY),
    "raises": ("class Bad(BaseException): pass\nraise Bad('harm')", RunStatus.RAISED),
    "leaves a process": ("import os, time\nN = os.fork()\nif N == 0: time.sleep(60)", RunStatus.OK),
}


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    found = docker_sandbox()
    yield found
    found.close()


def calling(tmp_path: Path, harm: str) -> SandboxCall:
    tmp_path.chmod(0o755)
    folder = tmp_path / "deps"
    folder.mkdir(mode=0o755, exist_ok=True)
    (folder / "harmful.py").write_text(harm)
    key = BoxKey("tenant", USES, dependencies=harm)
    return replace(call_of(package_of(tmp_path, main=USES)), dependencies=folder, key=key)


def run(
    sandbox: DockerSandbox, tmp_path: Path, harm: str, level: str, capabilities: Capabilities | None = None
) -> RunOutcome:
    profile = Profile(SMALL, capabilities or Capabilities(), isolation=level)
    return sandbox.run(profile, calling(tmp_path, harm))


def run_together(
    sandbox: DockerSandbox, tmp_path: Path, harm: str, capabilities: Capabilities | None = None
) -> list[RunOutcome]:
    """Of six callers."""
    profile, call = Profile(SMALL, capabilities or Capabilities(), isolation="shared"), calling(tmp_path, harm)
    with ThreadPoolExecutor(6) as callers:
        return list(callers.map(lambda n: sandbox.run(profile, replace(call, name=f"call-{n}")), range(6)))


@pytest.mark.req("SVC-7", "SVC-10")
@pytest.mark.parametrize("level", ["shared", "fresh", "single"])
@pytest.mark.parametrize("harm", HARM)
def test_what_a_dependency_does_as_it_is_imported_is_the_calls_own_end(
    sandbox: DockerSandbox, tmp_path: Path, harm: str, level: str
) -> None:
    source, status = HARM[harm]

    ends = [run(sandbox, tmp_path, source, level) for _ in range(2)]

    assert [(end.status, end.level) for end in ends] == [(status, level)] * 2, ends
    snapshot = sandbox.snapshot()
    assert snapshot is not None
    assert snapshot.retired.get("lost", 0) == (level != "single"), "It was imported ahead again."


@pytest.mark.req("SVC-7")
@pytest.mark.parametrize("level", ["fresh", "single"])
def test_a_dependency_that_is_never_imported_takes_no_more_than_the_time_of_a_load(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, level: str
) -> None:
    sandbox = sandbox_of(caps=PoolCaps(load_s=2))

    end = run(sandbox, tmp_path, "import time\ntime.sleep(3_600)", level)

    assert end.status is RunStatus.LOAD_TIMED_OUT, end
    assert next(name for name, _, _ in end.steps if name != "wait") == "load", end.steps


CONNECTS = """
import os, socket
way = socket.create_connection(("127.0.0.1", 3128))
way.sendall(b"CONNECT elsewhere.example.org:443 HTTP/1.1\\r\\n\\r\\n")
way.recv(1000)
{then}
"""
TOLERATES = CONNECTS.replace("elsewhere.", "").replace("way.recv(1000)", "N = way.recv(1000).decode()")
GRANTED = Capabilities.from_json({"net": [{"host": "example.org", "port": 443}]})


@pytest.mark.req("SVC-7")
def test_all_who_wait_for_a_load_that_harm_ends_meet_the_same_end(sandbox: DockerSandbox, tmp_path: Path) -> None:
    ends = run_together(sandbox, tmp_path, HARM["exits"][0])

    assert {end.status for end in ends} == {RunStatus.EXITED}, ends


@pytest.mark.req("SVC-6", "SVC-7")
def test_what_was_refused_while_nobody_called_leaves_no_mark_on_the_calls(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    gate = EgressGate()
    sandbox = sandbox_of(gate=gate)

    ends = [run(sandbox, tmp_path, TOLERATES.format(then=""), "fresh", GRANTED) for _ in range(2)]
    gate.close()

    assert [end.status for end in ends] == [RunStatus.OK] * 2, ends
    assert all("not_granted" not in end.value for end in ends), ends
    assert [[each.why for each in end.connections][:-1] for end in ends] == [["not_granted"], []], ends


@pytest.mark.req("SVC-6")
def test_what_a_load_that_timed_out_reached_for_is_told_once(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    gate = EgressGate()
    sandbox = sandbox_of(gate=gate, caps=PoolCaps(load_s=2))

    ends = run_together(sandbox, tmp_path, CONNECTS.format(then="import time\ntime.sleep(3_600)"), GRANTED)
    gate.close()

    assert {end.status for end in ends} == {RunStatus.LOAD_TIMED_OUT}, ends
    told = [each.host for end in ends for each in end.connections]
    assert told == ["elsewhere.example.org"], ends


@pytest.mark.req("SVC-6")
def test_what_a_dependency_reached_for_in_the_box_that_it_ended_is_told_with_the_call(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    gate = EgressGate()
    sandbox = sandbox_of(gate=gate)

    end = run(sandbox, tmp_path, CONNECTS.format(then="os._exit(3)"), "fresh", GRANTED)
    gate.close()

    assert end.status is RunStatus.EXITED, end
    assert [(each.host, each.allowed) for each in end.connections] == [("elsewhere.example.org", False)] * 2
