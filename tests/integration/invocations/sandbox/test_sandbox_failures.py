"""Sandbox failures: what a sandbox can meet on a bad day ends in a catalogued problem with a pair of facts, and the next call is
well.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import docker
from invocations.decide import rules
from invocations.run import execution, lease_heartbeat
from invocations.run.live_output import LiveReport
from invocations.sandbox.docker import INSTANCE, DockerSandbox
from invocations.sandbox.engine import Engine
from invocations.sandbox.pool.slots import PoolCaps
from tests.support.calls import PAIR, Bell, assert_problem, kinds_of, row_of
from tests.support.engine_switch import Door
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller

pytestmark = [pytest.mark.django_db, pytest.mark.attack]

ROOT = Path(__file__).resolve().parents[4]
BEFORE_THE_BREAKER_OPENS = 4  # failures of the engine in a row would have opened it by then
AGAIN_S = 90


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[DockerSandbox], DockerSandbox]]:
    """``use(sandbox)``: calls run there."""
    used = []

    def begin(sandbox: DockerSandbox) -> DockerSandbox:
        used.append(sandbox)
        for module in (execution, lease_heartbeat, rules):
            monkeypatch.setattr(module, "current_sandbox", lambda: sandbox)
        return sandbox

    yield begin
    for sandbox in used:
        sandbox.close()


@pytest.fixture
def hostile(enable: Callable[..., Tool], grant: Callable[..., Any]) -> Callable[[str], None]:
    """``hostile(name)``: the function of tests/tools/sample/hostile.py is a tool that may be called. So is ``echo``."""
    grant()
    enable("echo")

    def make(name: str) -> None:
        enable(
            name,
            input_schema={"type": "object"},  # each takes arguments of its own
            implementation={"module": "sample.hostile", "entry": name},
            timeout_ms=10_000,
        )

    return make


def check_problem(answer: Any, status: int, reason: str, state: str) -> dict[str, Any]:
    body = assert_problem(answer, status, reason)
    row = row_of(answer)
    assert (row.state, kinds_of(row)) == (state, PAIR)
    return body


def is_well(caller: Caller) -> bool:
    answer = caller.invoke("sample.tools.echo", {"text": "well"})
    return bool(answer.status_code == 200 and answer.json()["data"]["text"] == "well")


# What a run says is written down by another thread, which on SQLite waits for the transaction of a test to end.
@pytest.mark.django_db(transaction=True)
@pytest.mark.req("TOOLS-18", "SVC-7", "SVC-10")
@pytest.mark.parametrize(
    ("tool", "arguments", "harmless", "reason"),
    [
        ("prints", {"megabytes": 2_000}, {"megabytes": 0}, "SANDBOX.RESOURCE_EXCEEDED"),
        ("fills_its_disk", {"megabytes": 2_000}, {"megabytes": 0}, "TOOL.EXECUTION_FAILED"),
        ("kills_everybody", {}, None, "TOOL.EXECUTION_FAILED"),
    ],
    ids=["2 GB of output", "a full disk", "kills all it can"],
)
def test_a_tool_that_takes_too_much_is_stopped_and_the_pool_works_on(
    tool: str,
    arguments: dict[str, Any],
    harmless: dict[str, Any] | None,
    reason: str,
    caller: Caller,
    hostile: Callable[[str], None],
    bell: Bell,
    use: Callable[[DockerSandbox], DockerSandbox],
) -> None:
    use(docker_sandbox())
    hostile(tool)

    for _ in range(2):
        check_problem(caller.invoke(f"sample.tools.{tool}", arguments), 502, reason, "failed")
        assert is_well(caller)
        assert harmless is None or caller.invoke(f"sample.tools.{tool}", harmless).status_code == 200


@pytest.mark.req("TOOLS-18")
def test_an_image_that_is_not_there_is_a_failed_start_until_it_is(
    caller: Caller, hostile: Callable[[str], None], bell: Bell, use: Callable[[DockerSandbox], DockerSandbox]
) -> None:
    with closing(docker_sandbox()) as good:
        image = good.image
    missing = f"toolhub-test-gone:{uuid.uuid4().hex[:12]}"
    use(DockerSandbox(missing, f"test-{uuid.uuid4().hex[:12]}"))
    for _ in range(BEFORE_THE_BREAKER_OPENS):
        answer = caller.invoke("sample.tools.echo", {"text": "x"})
        check_problem(answer, 503, "SANDBOX.IMAGE_MISSING", "failed")
        assert "make sandbox-images" in answer.json()["error"]["remedy"]

    with closing(docker.from_env()) as client:
        client.images.get(image).tag(missing)
        try:
            assert is_well(caller)
        finally:
            client.images.remove(missing)


@pytest.mark.req("TOOLS-18")
def test_a_runtime_that_the_engine_does_not_have_is_a_failed_start_of_those_calls_only(
    caller: Caller, hostile: Callable[[str], None], bell: Bell, use: Callable[[DockerSandbox], DockerSandbox]
) -> None:
    sandbox = use(docker_sandbox(runtime="no-such-runtime"))
    for _ in range(BEFORE_THE_BREAKER_OPENS):
        check_problem(caller.invoke("sample.tools.echo", {"text": "x"}), 503, "SANDBOX.START_FAILED", "failed")

    sandbox._runtime = ""  # what another profile would have had

    assert is_well(caller)


@pytest.mark.req("TOOLS-18", "TOOLS-24")
@pytest.mark.parametrize("transport", ["socket", "attach"])
def test_when_the_engine_goes_away_during_a_call_the_call_ends_and_when_it_is_back_calls_are_well(
    transport: str,
    tmp_path_factory: pytest.TempPathFactory,
    caller: Caller,
    hostile: Callable[[str], None],
    bell: Bell,
    use: Callable[[DockerSandbox], DockerSandbox],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hostile("keeps_a_secret")
    says = threading.Event()
    monkeypatch.setattr(LiveReport, "__call__", lambda *_: says.set())
    with Door(tmp_path_factory.mktemp("door")) as door:
        sandbox = use(docker_sandbox(engine_url=door.url, caps=PoolCaps(ready=0)))  # each call needs a box of its own
        sandbox._maker.transports[""] = transport
        assert is_well(caller)

        def shut_once_it_says() -> None:
            if says.wait(AGAIN_S):
                door.shut()

        shutting = threading.Thread(target=shut_once_it_says)
        shutting.start()

        answer = caller.invoke("sample.tools.keeps_a_secret", {"text": "x", "seconds": 6})

        shutting.join()
        if transport == "socket":  # it does not go through the engine
            assert answer.json()["data"] == {"kept": 1}
        else:
            check_problem(answer, 503, "SANDBOX.WORKER_LOST", "outcome_unknown")
        refused = caller.invoke("sample.tools.echo", {"text": "x"})
        check_problem(refused, 503, "SANDBOX.START_FAILED", "failed")

        door.open()

        until = time.monotonic() + AGAIN_S
        while caller.invoke("sample.tools.keeps_a_secret", {"text": "x", "seconds": 0}).status_code != 200:
            assert time.monotonic() < until, "Calls are not well again."
        assert is_well(caller)
        sandbox.close()
        until = time.monotonic() + AGAIN_S
        with closing(Engine()) as engine:
            while left := engine.find({INSTANCE: sandbox._instance}):
                assert time.monotonic() < until, left  # what could not be removed meanwhile is tried again


@pytest.mark.req("TOOLS-18")
def test_when_the_run_directory_takes_nothing_calls_that_need_a_box_fail_until_it_does_again(
    caller: Caller, hostile: Callable[[str], None], bell: Bell, use: Callable[[DockerSandbox], DockerSandbox]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sandbox = use(docker_sandbox(run_dir=Path(folder, "run"), caps=PoolCaps(ready=0)))
        assert is_well(caller)
        own, aside = sandbox._run_dir.open(), Path(folder, "aside")
        own.rename(aside)
        own.write_text("no folder can be made here")

        for _ in range(2):
            check_problem(caller.invoke("sample.tools.echo", {"text": "x"}), 503, "SANDBOX.START_FAILED", "failed")

        own.unlink()
        aside.rename(own)
        assert is_well(caller)
        sandbox.close()


FULL_DISK = """
import sys
from pathlib import Path
from tests.support.sandboxes import docker_sandbox, run_source
sandbox = docker_sandbox(run_dir=Path(sys.argv[1], "run"))
outcomes = [run_source(sandbox, Path(sys.argv[2]), "def run(): return 1") for _ in range(2)]
print([(outcome.status.value, outcome.value) for outcome in outcomes])
sandbox.close()
"""


@pytest.mark.req("TOOLS-18")
def test_where_the_run_directory_is_on_a_full_disk_boxes_are_spoken_to_over_the_engine(tmp_path: Path) -> None:
    """The disk is full of folders, in a mount namespace of the process, for which no rights are needed."""
    with tempfile.TemporaryDirectory() as folder:
        mount = 'mount -t tmpfs -o size=4k,nr_inodes=2 none "$1" && mkdir "$1/x" && exec "$0" -c "$3" "$1" "$2"'
        words = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount]
        done = subprocess.run(
            [*words, sys.executable, folder, str(tmp_path), FULL_DISK], cwd=ROOT, capture_output=True, text=True
        )

    assert done.stdout.strip() == "[('ok', 1), ('ok', 1)]", done.stderr
