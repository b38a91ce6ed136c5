"""Sandbox life: what ends a call, a box, its owner or the engine, and what is left then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, Profile, RunStatus, SandboxUnavailable
from invocations.sandbox.boxes.box import Box
from invocations.sandbox.docker import CALL, DockerSandbox
from invocations.sandbox.pool.slots import PoolCaps, PoolSlotState
from tests.support.background_runs import SAYS_THAT_IT_RUNS, Background, wait_for
from tests.support.sandboxes import AtLevel, call_of, package_of, run_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.engine import Engine
    from tests.support.engine_proxy import EngineProxy

ROOT = Path(__file__).resolve().parents[2]
ONE = "def run(): return 1"
TOO_LONG = Path("/tmp", "so-long-that-no-socket-below-it-could-have-a-name-of-its-own-any-more")
TRANSPORTS = {"socket": None, "attach": TOO_LONG}


# -- without an engine, an image, a runtime, room


@pytest.mark.parametrize("url", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:9"])
def test_without_an_engine_a_call_says_so(tmp_path: Path, url: str) -> None:
    sandbox = DockerSandbox("toolhub-sandbox:any", "test", engine_url=url)

    outcome = run_source(sandbox, tmp_path, ONE)

    assert outcome.status is RunStatus.START_FAILED
    assert "make engine" in outcome.error_message
    assert url.partition("://")[2] in outcome.error_message
    with pytest.raises(SandboxUnavailable, match="make engine"):
        sandbox.check()
    sandbox.close()


def test_without_the_image_a_call_says_how_to_build_it(tmp_path: Path) -> None:
    sandbox = DockerSandbox("toolhub-sandbox:no-such-tag", "test")

    outcome = run_source(sandbox, tmp_path, ONE)

    assert outcome.status is RunStatus.START_FAILED
    assert "make sandbox-image" in outcome.error_message
    with pytest.raises(SandboxUnavailable, match="make sandbox-image"):
        sandbox.check()
    sandbox.close()


def test_an_image_of_other_sources_is_a_failed_start(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = sandbox_of()
    monkeypatch.setattr("sandbox.protocol.VERSION", 0)

    outcome = run_source(sandbox, tmp_path, ONE)

    assert outcome.status is RunStatus.START_FAILED
    assert "same sources" in outcome.error_message


def test_a_runtime_that_the_engine_does_not_have_is_a_failed_start(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path
) -> None:
    outcome = run_source(sandbox_of(runtime="no-such-runtime"), tmp_path, ONE)

    assert outcome.status is RunStatus.START_FAILED
    assert "no-such-runtime" in outcome.error_message


def test_what_cannot_be_put_into_the_run_directory_is_a_failed_start_and_calls_go_on_afterwards(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, short_path: Path
) -> None:
    sandbox = sandbox_of(run_dir=short_path, caps=PoolCaps(ready=0))
    assert run_source(sandbox, tmp_path, ONE).value == 1
    (own,) = short_path.iterdir()
    away = own.rename(short_path / "away")
    own.touch()  # stands for a full disk: nothing can be made below it

    outcome = run_source(sandbox, tmp_path, ONE)

    assert outcome.status is RunStatus.START_FAILED
    assert "TOOLHUB_SANDBOX_RUN_DIR" in outcome.error_message
    own.unlink()
    away.rename(own)
    assert run_source(sandbox, tmp_path, ONE).value == 1


# -- the engine goes away


def test_calls_go_on_in_boxes_that_are_there_while_the_engine_is_gone(
    sandbox_of: Callable[..., DockerSandbox], proxied: Callable[..., EngineProxy], engine: Engine, tmp_path: Path
) -> None:
    proxy = proxied(tmp_path, engine.url)
    sandbox = sandbox_of(engine_url=proxy.url)
    running = Background(AtLevel(sandbox, "fresh"), tmp_path, seconds=1)

    proxy.cut()

    assert running.outcome().value == "awake"
    again = running.call
    assert AtLevel(sandbox, "fresh").run(Profile(Limits(wall_ms=60_000)), again).value == "awake"
    assert run_source(sandbox, tmp_path, ONE).status in (RunStatus.START_FAILED, RunStatus.OK)  # there may be one ready
    proxy.mend()
    wait_for(lambda: run_source(sandbox, tmp_path, ONE).status is RunStatus.OK)


def test_a_call_that_goes_through_the_engine_is_lost_with_it(
    sandbox_of: Callable[..., DockerSandbox], proxied: Callable[..., EngineProxy], engine: Engine, tmp_path: Path
) -> None:
    proxy = proxied(tmp_path, engine.url)
    sandbox = sandbox_of(engine_url=proxy.url, run_dir=TOO_LONG)
    running = Background(AtLevel(sandbox, "fresh"), tmp_path)

    proxy.cut()

    outcome = running.outcome()
    assert outcome.status is RunStatus.LOST
    assert not outcome.clean
    assert run_source(sandbox, tmp_path, ONE).status is RunStatus.START_FAILED
    proxy.mend()
    wait_for(lambda: run_source(sandbox, tmp_path, ONE).status is RunStatus.OK)
    wait_for(lambda: not engine.exists(outcome.box))


def test_when_the_engine_fails_again_and_again_calls_fail_at_once(
    sandbox_of: Callable[..., DockerSandbox], proxied: Callable[..., EngineProxy], engine: Engine, tmp_path: Path
) -> None:
    proxy = proxied(tmp_path, engine.url)
    sandbox = sandbox_of(engine_url=proxy.url, caps=PoolCaps(ready=0))
    assert run_source(sandbox, tmp_path, ONE).value == 1
    proxy.cut()

    messages = [run_source(sandbox, tmp_path, ONE).error_message for _ in range(4)]

    assert "No Docker engine answers" in messages[0]
    assert "several times in a row" in messages[3]
    seen = sandbox.snapshot()
    assert seen is not None
    assert (seen.breaker, seen.failed_starts) == ("open", 3)


# -- boxes end


@pytest.mark.parametrize("run_dir", TRANSPORTS.values(), ids=TRANSPORTS)
def test_a_box_that_is_killed_from_outside_is_lost_and_the_next_call_is_not(
    sandbox_of: Callable[..., DockerSandbox], engine: Engine, tmp_path: Path, run_dir: Path | None
) -> None:
    sandbox = AtLevel(sandbox_of(run_dir=run_dir), "fresh")
    running = Background(sandbox, tmp_path)
    (box,) = [slot.box.id for slot in sandbox.sandbox._pool.slots() if slot.state is PoolSlotState.BUSY and slot.box]

    engine.signal(box, "SIGKILL")

    outcome = running.outcome()
    assert (outcome.status, outcome.clean, outcome.box) == (RunStatus.LOST, False, box)
    assert run_source(sandbox, tmp_path, ONE).value == 1


# -- calls are ended


@pytest.mark.parametrize("run_dir", TRANSPORTS.values(), ids=TRANSPORTS)
@pytest.mark.parametrize("level", ["shared", "fresh", "single", "cold"])
def test_a_cancelled_call_ends_with_what_it_said_and_its_box_goes(
    sandbox_of: Callable[..., DockerSandbox], engine: Engine, tmp_path: Path, level: str, run_dir: Path | None
) -> None:
    sandbox = AtLevel(sandbox_of(run_dir=run_dir), level)
    running = Background(sandbox, tmp_path)

    sandbox.kill(running.call.name)

    outcome = running.outcome()
    assert (outcome.status, outcome.error_message) == (
        RunStatus.CANCELLED,
        "The call was cancelled while the tool ran.",
    )
    assert outcome.cpu_ms is not None  # the box has reported, it was not just taken away
    wait_for(lambda: not engine.exists(outcome.box))


def test_a_call_that_waits_for_a_box_can_be_cancelled(sandbox_of: Callable[..., DockerSandbox], tmp_path: Path) -> None:
    sandbox = sandbox_of(caps=PoolCaps(boxes=1))
    running = Background(sandbox, tmp_path)
    waiting = Background(sandbox, tmp_path, wait=False)
    wait_for(lambda: sandbox._pool.waiting() == 1)

    sandbox.kill(waiting.call.name)

    outcome = waiting.outcome()
    assert (outcome.status, outcome.box) == (RunStatus.CANCELLED, "")
    assert not waiting.runs
    sandbox.kill(running.call.name)
    assert running.outcome().status is RunStatus.CANCELLED


def test_a_call_can_be_cancelled_while_its_box_is_made(
    sandbox_of: Callable[..., DockerSandbox], engine: Engine, tmp_path: Path
) -> None:
    sandbox = sandbox_of(caps=PoolCaps(ready=0))
    running = Background(sandbox, tmp_path, wait=False)
    wait_for(lambda: engine.find({CALL: running.call.name}))

    sandbox.kill(running.call.name)

    assert running.outcome().status is RunStatus.CANCELLED
    wait_for(lambda: not engine.find({CALL: running.call.name}))


def test_a_call_can_be_cancelled_while_its_package_is_loaded(
    sandbox_of: Callable[..., DockerSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = sandbox_of()
    call = call_of(package_of(tmp_path, main=SAYS_THAT_IT_RUNS))
    wait_until_loaded = Box.wait_until_loaded

    def cancelled_meanwhile(box: Box, seconds: float) -> None:
        sandbox.kill(call.name)
        wait_until_loaded(box, seconds)

    monkeypatch.setattr(Box, "wait_until_loaded", cancelled_meanwhile)

    assert sandbox.run(Profile(), call).status is RunStatus.CANCELLED
