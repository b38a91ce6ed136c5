"""What becomes of a call whose dependencies do harm as they are imported? The same at every level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import BoxKey, Limits, Profile, Status
from invocations.sandbox.egress import Gate
from invocations.sandbox.slots import Caps
from tests.boxes import call_of, docker_sandbox, package_of
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from invocations.sandbox.base import Outcome
    from invocations.sandbox.docker import DockerSandbox

USES = "import harmful\ndef run(): return harmful.N"
SMALL = Limits(wall_ms=1_500, memory_bytes=64 << 20)
HARM = {
    "exits": ("import os\nos._exit(3)", Status.EXITED),
    "fills its memory": ("held = []\nwhile True: held.append(bytearray(1 << 20))", Status.OUT_OF_MEMORY),
    "raises": ("class Bad(BaseException): pass\nraise Bad('harm')", Status.RAISED),
    "leaves a process": ("import os, time\nN = os.fork()\nif N == 0: time.sleep(60)", Status.OK),
}


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    found = docker_sandbox()
    yield found
    found.close()


def run(
    sandbox: DockerSandbox, tmp_path: Path, harm: str, level: str, capabilities: Capabilities | None = None
) -> Outcome:
    tmp_path.chmod(0o755)
    folder = tmp_path / "deps"
    folder.mkdir(mode=0o755, exist_ok=True)
    (folder / "harmful.py").write_text(harm)
    key = BoxKey("tenant", USES, dependencies=harm)
    call = replace(call_of(package_of(tmp_path, main=USES)), dependencies=folder, key=key)
    return sandbox.run(Profile(SMALL, capabilities or Capabilities(), isolation=level), call)


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
    sandbox = sandbox_of(caps=Caps(load_s=2))

    end = run(sandbox, tmp_path, "import time\ntime.sleep(3_600)", level)

    assert end.status is Status.LOAD_TIMED_OUT, end
    assert next(name for name, _, _ in end.steps if name != "wait") == "load", end.steps


CONNECTS = """
import os, socket
way = socket.create_connection(("127.0.0.1", 3128))
way.sendall(b"CONNECT elsewhere.example.org:443 HTTP/1.1\\r\\n\\r\\n")
way.recv(1000)
os._exit(3)
"""


@pytest.mark.req("SVC-6")
def test_what_a_dependency_reached_for_in_the_box_that_it_ended_is_told_with_the_call(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    gate = Gate()
    sandbox = sandbox_of(gate=gate)
    granted = Capabilities.from_json({"net": [{"host": "example.org", "port": 443}]})

    end = run(sandbox, tmp_path, CONNECTS, "fresh", granted)
    gate.close()

    assert end.status is Status.EXITED, end
    assert [(each.host, each.allowed) for each in end.connections] == [("elsewhere.example.org", False)] * 2
