"""Sandbox owner: when the process that owns boxes ends in whatever way, what becomes of them and of what it had put aside?"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from invocations.sandbox.base import Limits, RunStatus
from invocations.sandbox.boxes.maker import SOCKET, BoxMaker, NotMade
from invocations.sandbox.boxes.run_directory import RunDir
from invocations.sandbox.docker import INSTANCE, LONGEST, OWNER
from invocations.sandbox.engine import Engine, EngineError
from invocations.sandbox.isolation.container import BoxShape, build_container_config
from sandbox.image import image_name
from tests.support.background_runs import Background, wait_for
from tests.support.sandboxes import AtLevel, docker_sandbox, run_source

ROOT = Path(__file__).resolve().parents[2]
TOO_LONG = Path("/tmp", "so-long-that-no-socket-below-it-could-have-a-name-of-its-own-any-more")

WORKER = """
import sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tests.support.background_runs import SAYS_THAT_IT_RUNS
from tests.support.sandboxes import *
place = Path(sys.argv[2]) if sys.argv[2] else None
sandbox = docker_sandbox(run_dir=place)
print(sandbox._instance, flush=True)
print("starting", flush=True)
sandbox.start()
warm = AtLevel(sandbox, "fresh")
run_source(warm, Path(sys.argv[1]), "def run(): return 1")
print("idle", flush=True)
call = call_of(package_of(Path(sys.argv[1]), main=SAYS_THAT_IT_RUNS))
AtLevel(sandbox, "single").run(Profile(Limits(wall_ms=60_000)), call, lambda event: print("running", flush=True))
"""


def kill_a_worker(engine: Engine, folder: Path, run_dir: Path, at: str) -> None:
    """At this moment of its life; then nothing of it is left, on the engine and in the run directory."""
    command = [sys.executable, "-c", WORKER, str(folder), str(run_dir)]
    worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    with worker.stdout as output:
        instance = output.readline().strip()
        while output.readline().strip() != at:
            assert worker.poll() is None
    worker.send_signal(signal.SIGKILL)
    worker.wait()

    ran = [box["Id"] for box in engine.find({INSTANCE: instance}) if box["State"] == "running"]
    wait_for(lambda: not any(engine.exists(box) for box in ran), seconds=5)
    after = docker_sandbox(run_dir=run_dir, instance=instance)  # the next worker finds what was not started yet
    wait_for(lambda: after.remove_orphans() == 0 and not engine.find({INSTANCE: instance}), seconds=5)
    after.start()
    after.close()
    if run_dir != TOO_LONG:
        assert not run_dir.exists()


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize(
    ("at", "transport"),
    [("running", "socket"), ("running", "attach"), ("idle", "socket"), ("idle", "attach"), ("starting", "socket")],
)
def test_when_the_worker_is_killed_its_boxes_go_too(
    engine: Engine, tmp_path: Path, short_path: Path, at: str, transport: str
) -> None:
    kill_a_worker(engine, tmp_path, short_path / "run" if transport == "socket" else TOO_LONG, at)


@pytest.mark.long
def test_fifty_killed_workers_leave_no_box(engine: Engine, tmp_path: Path, short_path: Path) -> None:
    for number in range(50):
        kill_a_worker(engine, tmp_path, short_path / "run", ("starting", "idle", "running")[number % 3])


@pytest.mark.parametrize(
    ("labels", "removed"),
    [
        ({LONGEST: "-1", OWNER: ""}, 1),
        ({LONGEST: "7200", OWNER: "another-boot/1/1/1"}, 0),
        ({LONGEST: "7200", OWNER: "dead"}, 1),
    ],
    ids=["it is older than it may get", "its owner is on another machine", "its owner is dead"],
)
def test_what_is_overdue_is_removed(engine: Engine, labels: dict[str, str], removed: int) -> None:
    sandbox = docker_sandbox()
    if labels[OWNER] == "dead":
        ended = subprocess.Popen([sys.executable, "-c", "pass"])
        ended.wait()
        world = sandbox._owner.rsplit("/", 2)[0]
        labels = labels | {OWNER: f"{world}/{ended.pid}/1"}
    config = build_container_config(
        image=engine.image_id(sandbox.image),
        uid=200_001,
        limits=Limits(),
        package_bytes=0,
        labels={INSTANCE: sandbox._instance} | labels,
    )
    box = engine.create(config, f"toolhub-test-{sandbox._instance}")

    assert sandbox.remove_orphans() == removed

    assert engine.exists(box) == (not removed)
    engine.remove(box)
    sandbox.close()


def test_only_what_nobody_holds_any_more_is_removed_from_the_run_directory(short_path: Path) -> None:
    alive, other, new = (RunDir(short_path, name) for name in ("hub", "another hub", "hub"))
    alive.make_folder()
    other.make_folder()
    left_over = shutil.copytree(alive.open(), short_path / "left-over")

    assert new.clear_leftovers() == 1

    assert not left_over.exists()
    assert alive.open().exists()
    assert other.open().exists()
    for each in (alive, other, new):
        each.close()
    assert not short_path.exists()
    short_path.mkdir()


def test_whoever_comes_first_finds_one_folder_with_the_others(short_path: Path) -> None:
    mine = RunDir(short_path, "hub")
    together = threading.Barrier(8)

    def make_folder() -> Path:
        together.wait(timeout=30)
        return mine.make_folder().parent

    with ThreadPoolExecutor(8) as pool:
        found = {made.result() for made in [pool.submit(make_folder) for _ in range(8)]}

    assert found == set(short_path.iterdir())
    assert len(found) == 1
    mine.close()


def test_one_that_closes_leaves_the_boxes_of_another_of_the_same_process(tmp_path: Path) -> None:
    """The walls of a host are looked at with a sandbox of its own."""
    instance = f"test-{uuid.uuid4().hex[:12]}"
    mine, other = docker_sandbox(instance=instance), docker_sandbox(instance=instance)
    running = Background(AtLevel(mine, "fresh"), tmp_path)
    assert run_source(other, tmp_path, "def run(): return 1").value == 1

    other.close()

    mine.kill(running.call.name)
    assert running.outcome().status is RunStatus.CANCELLED  # and not lost
    mine.close()


FAST_CLOCK = """
import sys, time
true_time = time.time
time.time = lambda: true_time() + float(sys.argv[2])
from tests.support.sandboxes import docker_sandbox
print(docker_sandbox(instance=sys.argv[1]).remove_orphans())
"""


@pytest.mark.req("SVC-6")
@pytest.mark.parametrize("ahead_s", [7200, -7200])
def test_a_process_whose_clock_is_wrong_removes_no_box_of_a_living_one(
    engine: Engine, tmp_path: Path, short_path: Path, ahead_s: int
) -> None:
    """Of a worker on this machine that is at a call, and of one elsewhere, of which nothing is known but how old its box is."""
    command = [sys.executable, "-c", WORKER, str(tmp_path), str(short_path / "run")]
    worker = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    with worker.stdout as output:
        instance = output.readline().strip()
        while output.readline().strip() != "running":
            assert worker.poll() is None
        config = build_container_config(
            image=engine.image_id(docker_sandbox().image),
            uid=200_002,
            limits=Limits(),
            package_bytes=0,
            labels={INSTANCE: instance, LONGEST: "900", OWNER: "another-boot/1/1/1"},
        )
        elsewhere = engine.create(config, f"toolhub-test-{instance}")
        at_work = {box["Id"] for box in engine.find({INSTANCE: instance})} - {elsewhere}
        try:
            command = [sys.executable, "-c", FAST_CLOCK, instance, str(ahead_s)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

            assert done.stdout.split() == ["0"]
            assert at_work & {
                box["Id"] for box in engine.find({INSTANCE: instance})
            }  # the other was warm, and may get old
            assert engine.exists(elsewhere)
        finally:
            engine.remove(elsewhere)
            worker.kill()
            worker.wait()
    wait_for(lambda: not any(engine.exists(box) for box in at_work), seconds=5)
    docker_sandbox(instance=instance).remove_orphans()


class SlowEngine(Engine):
    """One that starts a box when it was given up, and does not get to removing it. ``places``: where boxes have their folders."""

    def __init__(self, places: Path) -> None:
        super().__init__()
        self.started = ""
        self._places = places

    def start(self, box: str) -> None:
        self.started = box
        for socket in self._places.glob("*/*/s"):
            socket.unlink()
        super().start(box)

    def remove(self, box: str) -> None:
        raise EngineError("The engine is busy.")


def test_a_box_that_starts_when_it_was_given_up_ends_by_itself(short_path: Path) -> None:
    slow, instance = SlowEngine(short_path), f"test-{uuid.uuid4().hex}"
    maker = BoxMaker(slow, instance, RunDir(short_path, instance), age_s=60)
    maker.transports[""] = SOCKET
    image = os.environ.get("TOOLHUB_SANDBOX_IMAGE") or image_name()

    with pytest.raises(NotMade, match="ended before it came to its socket"):
        maker.make(BoxShape(slow.image_id(image), Limits()))

    wait_for(lambda: not slow.exists(slow.started), seconds=5)
    slow.close()
