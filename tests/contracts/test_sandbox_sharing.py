"""Boxes that are used again, on the real engine: by whom, how often, and what ends them."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import BoxKey, Limits, Profile, RunOutcome, RunStatus, SandboxCall
from invocations.sandbox.docker import INSTANCE
from invocations.sandbox.isolation import container
from invocations.sandbox.pool.slots import PoolCaps
from tests.support.background_runs import Background, wait_for
from tests.support.sandboxes import AtLevel, call_of, docker_sandbox, package_of, run_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from invocations.sandbox.docker import DockerSandbox
    from invocations.sandbox.engine import Engine
    from invocations.sandbox.stats import SandboxSnapshot

COUNTS = "import os\nseen = []\ndef run(a=0):\n    seen.append(a)\n    return [seen, os.listdir('/w')]"
LEAVES_A_PROCESS = "import os, time\ndef run():\n    if os.fork() == 0:\n        time.sleep(60)\n    return 'done'"
KEY = BoxKey("tenant", "code")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[DockerSandbox]:
    sandbox = docker_sandbox()
    yield sandbox
    sandbox.close()


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> SandboxCall:
    return call_of(package_of(tmp_path_factory.mktemp("tool"), main=COUNTS))


def seen_of(sandbox: DockerSandbox) -> SandboxSnapshot:
    seen = sandbox.snapshot()
    assert seen is not None
    return seen


def run(sandbox: DockerSandbox, call: SandboxCall, key: BoxKey | None = KEY, **profile: Any) -> RunOutcome:
    """The call once more, under another name."""
    name = call_of(b"").name
    outcome = sandbox.run(Profile(**profile), replace(call, name=name, key=key))
    assert outcome.status is RunStatus.OK, outcome
    assert outcome.value == [[0], []]
    return outcome


# -- by whom


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("level", ["shared", "fresh"])
def test_the_same_tenant_version_and_profile_get_the_same_box(
    sandbox: DockerSandbox, call: SandboxCall, level: str
) -> None:
    outcomes = [run(sandbox, call, isolation=level) for _ in range(5)]

    assert len({outcome.box for outcome in outcomes}) == 1
    assert {outcome.level for outcome in outcomes} == {level}


@pytest.mark.req("SVC-6", "SVC-10")
def test_nobody_else_does(sandbox: DockerSandbox, call: SandboxCall) -> None:
    """Not another tenant, version, dependencies or agent, nor other limits or another level."""
    keys = [KEY, replace(KEY, tenant="x"), replace(KEY, code="x"), replace(KEY, dependencies="x")]
    keys.append(replace(KEY, principal="x"))

    boxes = [run(sandbox, call, key).box for key in keys]
    boxes.append(run(sandbox, call, limits=Limits(wall_ms=9_000)).box)
    boxes.append(run(sandbox, call, isolation="shared").box)
    again = [run(sandbox, call, key).box for key in keys]

    assert len(set(boxes)) == len(boxes)
    assert again == boxes[: len(keys)]


@pytest.mark.parametrize("level", ["single", "cold"])
def test_boxes_for_one_call_serve_one_call(
    sandbox: DockerSandbox, engine: Engine, call: SandboxCall, level: str
) -> None:
    outcomes = [run(sandbox, call, isolation=level) for _ in range(2)]

    assert outcomes[0].box != outcomes[1].box
    assert {outcome.level for outcome in outcomes} == {level}
    wait_for(lambda: not any(engine.exists(outcome.box) for outcome in outcomes))


def test_a_call_that_nobody_may_follow_has_a_box_of_its_own(sandbox: DockerSandbox, call: SandboxCall) -> None:
    assert run(sandbox, call, key=None, isolation="shared").level == "single"


def test_without_a_pool_every_call_is_cold(sandbox_of: Callable[..., DockerSandbox], call: SandboxCall) -> None:
    sandbox = sandbox_of(caps=PoolCaps(ready=0))

    assert run(sandbox, call, isolation="shared").level == "cold"
    wait_for(lambda: not seen_of(sandbox).boxes)


def test_where_calls_get_no_namespaces_of_their_own_boxes_are_used_once(
    sandbox_of: Callable[..., DockerSandbox], call: SandboxCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_FRESH_SECCOMP", container._SECCOMP)  # as on a host that forbids them
    sandbox = sandbox_of()

    assert [run(sandbox, call, isolation="fresh").level for _ in range(2)] == ["single", "single"]
    assert run(sandbox, call, isolation="shared").level == "shared"


# -- how long


@pytest.mark.parametrize(
    ("source", "level", "limits", "why"),
    [
        (LEAVES_A_PROCESS, "shared", Limits(), "dirty"),
        ("import time\ndef run(): time.sleep(60)", "fresh", Limits(wall_ms=300), "timed_out"),
        ("def run():\n    while True: print('x' * 10000)", "shared", Limits(log_flood_bytes=100_000), "log_flood"),
    ],
    ids=["a process left behind", "too long", "a flood"],
)
def test_after_a_call_that_did_not_end_clean_the_box_is_gone(
    sandbox_of: Callable[..., DockerSandbox],
    engine: Engine,
    tmp_path: Path,
    source: str,
    level: str,
    limits: Limits,
    why: str,
) -> None:
    sandbox = sandbox_of()
    call = call_of(package_of(tmp_path, main=source))
    call = replace(call, key=KEY)

    first = sandbox.run(Profile(limits, isolation=level), call)
    second = sandbox.run(Profile(limits, isolation=level), replace(call, name="again"))

    assert not first.clean
    assert first.box != second.box
    wait_for(lambda: not engine.exists(first.box))
    assert seen_of(sandbox).retired[why] == 2


def test_a_box_ends_after_so_many_calls(sandbox_of: Callable[..., DockerSandbox], call: SandboxCall) -> None:
    sandbox = sandbox_of(caps=PoolCaps(calls=2))

    boxes = [run(sandbox, call).box for _ in range(4)]

    assert boxes[0] == boxes[1] != boxes[2] == boxes[3]
    assert seen_of(sandbox).retired["calls"] == 2


def test_boxes_that_nobody_used_for_a_while_are_ended(
    sandbox_of: Callable[..., DockerSandbox], engine: Engine, call: SandboxCall
) -> None:
    sandbox = sandbox_of(caps=PoolCaps(idle_s=1))

    box = run(sandbox, call).box

    wait_for(lambda: not engine.exists(box))
    assert seen_of(sandbox).retired["idle"] >= 1


def test_a_box_that_died_while_it_waited_costs_no_call(
    sandbox: DockerSandbox, engine: Engine, call: SandboxCall
) -> None:
    key = replace(KEY, code="dies")
    box = run(sandbox, call, key).box

    engine.signal(box, "SIGKILL")
    wait_for(lambda: not engine.exists(box))

    assert run(sandbox, call, key).box != box


def test_a_package_that_does_not_load_teaches_nothing_about_the_host(
    sandbox_of: Callable[..., DockerSandbox], call: SandboxCall
) -> None:
    sandbox = sandbox_of()
    bent = io.BytesIO()
    with zipfile.ZipFile(bent, "w") as archive:
        archive.writestr("tool/../../away.py", "")

    refused = sandbox.run(Profile(isolation="fresh"), replace(call, package=bent.getvalue(), key=BoxKey("a", "bent")))

    assert refused.status is RunStatus.START_FAILED
    assert "plain files" in refused.error_message
    assert run(sandbox, call, isolation="fresh").level == "fresh"


def test_the_caps_hold_and_calls_wait_for_their_turn(
    sandbox_of: Callable[..., DockerSandbox], engine: Engine, tmp_path: Path
) -> None:
    sandbox = sandbox_of(caps=PoolCaps(boxes=1))
    first = Background(AtLevel(sandbox, "fresh", tenant="a"), tmp_path)
    second = Background(AtLevel(sandbox, "fresh", tenant="b"), tmp_path, wait=False, seconds=0)
    wait_for(lambda: seen_of(sandbox).waits.now == 1)
    boxes = [box["Id"] for box in engine.find({INSTANCE: sandbox._instance})]

    sandbox.kill(first.call.name)

    assert first.outcome().status is RunStatus.CANCELLED
    assert boxes == [first.outcome().box]
    assert second.outcome().value == "awake"


def test_boxes_are_ready_before_anybody_calls(sandbox_of: Callable[..., DockerSandbox], call: SandboxCall) -> None:
    sandbox = sandbox_of()

    sandbox.start()

    wait_for(lambda: seen_of(sandbox).states["ready"] == 1)
    run(sandbox, call, isolation="fresh")
    seen = seen_of(sandbox)
    assert (seen.cold_starts, seen.refills) == (0, 1)


def test_closing_leaves_nothing(
    sandbox_of: Callable[..., DockerSandbox], engine: Engine, tmp_path: Path, short_path: Path
) -> None:
    place = short_path / "run"
    sandbox = sandbox_of(run_dir=place)
    run_source(AtLevel(sandbox, "fresh"), tmp_path, "def run(): return 1")
    assert engine.find({INSTANCE: sandbox._instance})
    assert list(place.iterdir())

    sandbox.close()

    assert engine.find({INSTANCE: sandbox._instance}) == []
    assert not place.exists()


def test_what_it_looks_like_can_be_written_down(sandbox: DockerSandbox, call: SandboxCall) -> None:
    run(sandbox, replace(call, labels={"toolhub.tool": "acme.orders.count"}), replace(KEY, code="shown"))

    seen = seen_of(sandbox)

    assert type(seen).from_json(seen.to_json()) == seen
    (box,) = [box for box in seen.boxes if box.tool]
    assert (box.tool, box.tenant, box.level, box.calls) == ("acme.orders.count", "tenant", "fresh", 1)
    assert seen.calls["fresh"]["ok"] >= 1
    assert sum(seen.states.values()) == len(seen.boxes)
    assert seen.waits.count >= 1
    assert (seen.breaker, seen.transports) == ("closed", {"": "socket"})
