from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, Outcome, Profile, SandboxUnavailable, Status
from invocations.sandbox.container import container_config
from invocations.sandbox.docker import CALL, DEADLINE, INSTANCE, OWNER, DockerSandbox
from invocations.sandbox.engine import Engine
from tests.boxes import call_of, docker_sandbox, package_of, run_source
from tests.contracts.sandbox_contract import SandboxContract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
SLEEPS = "import time\ndef run(): time.sleep(60)"


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    sandbox = docker_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


class TestDockerSandbox(SandboxContract):
    @pytest.fixture
    def sandbox(self) -> Iterator[DockerSandbox]:
        sandbox = docker_sandbox()
        yield sandbox
        sandbox.close()


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> float:
    """How long it took until the condition held."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, "It did not happen in time."
        time.sleep(0.02)
    return time.monotonic() - begun


class Background:
    """A run in another thread, from the moment its box is there."""

    def __init__(self, sandbox: DockerSandbox, engine: Engine, folder: Path, source: str = SLEEPS) -> None:
        self.call = call_of(package_of(folder, main=source))
        self._outcomes: list[Outcome] = []
        self._thread = threading.Thread(target=lambda: self._outcomes.append(sandbox.run(Profile(), self.call)))
        self._thread.start()
        wait_for(lambda: self._running(engine))
        time.sleep(0.5)  # let the tool begin

    def _running(self, engine: Engine) -> bool:
        found = engine.find({CALL: self.call.name})
        if found and found[0]["State"] == "running":
            self.box: str = found[0]["Id"]
            return True
        return False

    def outcome(self) -> Outcome:
        self._thread.join(20)
        return self._outcomes[0]


@pytest.mark.parametrize("url", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:9"])
def test_without_an_engine_a_call_says_so_soon(tmp_path: Path, url: str) -> None:
    sandbox = DockerSandbox("toolhub-sandbox:any", "test", engine_url=url)
    begun = time.monotonic()

    outcome = run_source(sandbox, tmp_path, "def run(): return 1")

    assert outcome.status is Status.START_FAILED
    assert "make engine" in outcome.error_message
    assert url.partition("://")[2] in outcome.error_message
    assert time.monotonic() - begun < 2.5
    with pytest.raises(SandboxUnavailable, match="make engine"):
        sandbox.check()


def test_without_the_image_a_call_says_how_to_build_it(tmp_path: Path) -> None:
    sandbox = DockerSandbox("toolhub-sandbox:no-such-tag", "test")

    outcome = run_source(sandbox, tmp_path, "def run(): return 1")

    assert outcome.status is Status.START_FAILED
    assert "make sandbox-image" in outcome.error_message
    with pytest.raises(SandboxUnavailable, match="make sandbox-image"):
        sandbox.check()
    sandbox.close()


def test_an_image_of_other_sources_is_a_failed_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = docker_sandbox()
    monkeypatch.setattr("sandbox.protocol.VERSION", 0)

    outcome = run_source(sandbox, tmp_path, "def run(): return 1")

    assert outcome.status is Status.START_FAILED
    assert "same sources" in outcome.error_message
    sandbox.close()


def test_killing_where_no_engine_answers_is_no_error() -> None:
    # The web process of the production shape has no engine, and may be the one that finds a lease run out.
    sandbox = DockerSandbox("none", "none", engine_url="unix:///nonexistent/docker.sock")

    sandbox.kill("inv-nobody-1")


def test_a_runtime_that_the_engine_does_not_have_is_a_failed_start(tmp_path: Path) -> None:
    sandbox = docker_sandbox(runtime="no-such-runtime")

    outcome = run_source(sandbox, tmp_path, "def run(): return 1")

    assert outcome.status is Status.START_FAILED
    assert "no-such-runtime" in outcome.error_message
    sandbox.close()


def test_a_box_that_is_killed_from_outside_is_lost(sandbox: DockerSandbox, engine: Engine, tmp_path: Path) -> None:
    background = Background(sandbox, engine, tmp_path)

    engine.signal(background.box, "SIGKILL")

    outcome = background.outcome()
    assert outcome.status is Status.LOST
    assert not outcome.clean


def test_a_run_can_be_killed_from_another_process(sandbox: DockerSandbox, engine: Engine, tmp_path: Path) -> None:
    background = Background(sandbox, engine, tmp_path)
    other = DockerSandbox(sandbox.image, sandbox._instance)
    begun = time.monotonic()

    other.kill(background.call.name)

    assert background.outcome().status is Status.CANCELLED
    assert time.monotonic() - begun < 2
    wait_for(lambda: not engine.find({CALL: background.call.name}))
    other.close()


def test_when_the_worker_is_killed_its_box_goes_too(engine: Engine, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.boxes import *\n"
        "sandbox = docker_sandbox()\nprint(sandbox._instance, flush=True)\n"
        f"run_source(sandbox, Path(sys.argv[1]), {SLEEPS!r}, limits=Limits(wall_ms=60_000))"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert worker.stdout is not None
    with worker.stdout as output:
        instance = output.readline().strip()
    wait_for(lambda: any(box["State"] == "running" for box in engine.find({INSTANCE: instance})))

    worker.send_signal(signal.SIGKILL)
    worker.wait()

    assert wait_for(lambda: not engine.find({INSTANCE: instance})) < 2


@pytest.mark.parametrize(
    ("labels", "removed"),
    [
        ({DEADLINE: "1000", OWNER: ""}, 1),
        ({DEADLINE: "99999999999", OWNER: "another-boot/1/1/1"}, 0),
        ({DEADLINE: "99999999999", OWNER: "dead"}, 1),
    ],
    ids=["its deadline has passed", "its owner is on another machine", "its owner is dead"],
)
def test_what_is_overdue_is_removed(
    sandbox: DockerSandbox, engine: Engine, labels: dict[str, str], removed: int
) -> None:
    if labels[OWNER] == "dead":
        ended = subprocess.Popen([sys.executable, "-c", "pass"])
        ended.wait()
        world = sandbox._owner.rsplit("/", 2)[0]
        labels = labels | {OWNER: f"{world}/{ended.pid}/1"}
    config = container_config(
        image=engine.image_id(sandbox.image),
        uid=200_001,
        limits=Limits(),
        package_bytes=0,
        labels={INSTANCE: sandbox._instance} | labels,
    )
    box = engine.create(config, f"toolhub-test-{sandbox._instance}")

    assert sandbox.kill_overdue() == removed

    assert engine.exists(box) == (not removed)
    engine.remove(box)


@pytest.mark.req("SVC-6")
def test_each_call_has_a_container_of_its_own_that_is_gone_afterwards(
    sandbox: DockerSandbox, engine: Engine, tmp_path: Path
) -> None:
    first, second = Background(sandbox, engine, tmp_path), Background(sandbox, engine, tmp_path)
    users = [
        json.loads(subprocess.check_output(["docker", "inspect", box]))[0]["Config"]["User"]
        for box in (first.box, second.box)
    ]
    for background in (first, second):
        sandbox.kill(background.call.name)
        assert background.outcome().status is Status.CANCELLED

    outcome = run_source(sandbox, tmp_path, "def run(): return 1")

    assert users[0] != users[1]
    assert outcome.value == 1
    assert outcome.box not in {first.box, second.box}
    assert outcome.image == engine.image_id(sandbox.image)
    wait_for(lambda: not engine.find({INSTANCE: sandbox._instance}))


PROBE = """
import ctypes, os, resource
def run():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {
        "capabilities": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "no_new_privileges": status["NoNewPrivs"].strip(),
        "seccomp": status["Seccomp"].strip(),
        "filters": status["Seccomp_filters"].strip(),
        "uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(), "pid": os.getpid(),
        "hostname": os.uname().nodename,
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,
        "core": resource.getrlimit(resource.RLIMIT_CORE),
        "cwd": os.getcwd(), "mode": os.stat("/w").st_mode & 0o777, "package": os.stat("/p").st_mode & 0o777,
    }
"""


def test_every_wall_is_up_as_the_kernel_tells_it(sandbox: DockerSandbox, tmp_path: Path) -> None:
    seen = run_source(sandbox, tmp_path, PROBE).value

    assert seen["capabilities"] == [0, 0, 0, 0, 0]
    assert seen["no_new_privileges"] == "1"
    assert seen["seccomp"] == "2"
    assert int(seen["filters"]) == 2
    assert 200_000 <= seen["uid"] < 300_000
    assert seen["gid"] == seen["uid"]
    assert seen["groups"] in ([], [seen["gid"]])
    assert seen["hostname"] == "sandbox"
    assert seen["descriptors"] == 5  # nothing to read, two logs, report, progress
    assert seen["core"] == [0, 0]
    assert (seen["cwd"], seen["mode"], seen["package"]) == ("/w", 0o700, 0o555)


def test_without_scratch_space_nothing_can_be_written(sandbox: DockerSandbox, tmp_path: Path) -> None:
    outcome = run_source(sandbox, tmp_path, "def run(): open('/w/x', 'w')", limits=Limits(tmp_bytes=0))

    assert (outcome.status, outcome.blocked) == (Status.CAPABILITY_BLOCKED, "fs")


def test_the_largest_package_goes_through(sandbox: DockerSandbox, tmp_path: Path) -> None:
    package = package_of(tmp_path, main="def run(): return len(open(__file__.replace('main', 'large')).read())",
                         large="#" * (15 * 1024 * 1024))  # fmt: skip

    outcome = sandbox.run(Profile(Limits(memory_bytes=64 * 1024 * 1024)), call_of(package))

    assert outcome.value == 15 * 1024 * 1024, outcome


def test_a_process_left_behind_is_ended_and_reported(sandbox: DockerSandbox, tmp_path: Path) -> None:
    source = "import os, time\ndef run():\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(60)\n    return 'done'"

    outcome = run_source(sandbox, tmp_path, source)

    assert (outcome.status, outcome.value) == (Status.OK, "done")
    assert not outcome.clean
