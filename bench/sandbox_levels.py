"""Sandbox levels: what a call costs at each, against what Docker offers for the same, in the same minutes.

All ways take their turns, and the order rotates, so that load from elsewhere falls on all alike. After a way that leaves
work behind (a container to remove, a box to make ahead) there is a pause that is not measured.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import docker
from bench import llm_sandbox_peer
from bench.figures import CannotMeasure, MeasuredTimes
from bench.sandbox_harness import PYTHON, TRIVIAL, BenchTool, get_image_name, make_call, open_sandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROGRAM = "print({'sum': sum(range(100))})"
SHARED, FRESH, SINGLE, COLD = (f"sandbox call, {level}" for level in ("shared", "fresh", "single", "cold"))
EXEC, EXEC_CLI = "docker exec, kept container, by its API", "docker exec, kept container, by its command"
DEFAULT, CLOSED = "docker run --rm", "docker run --rm --network none"
PEER = "llm-sandbox, its pool"
_RUN = ["-I", "-S", "-B", "-c", PROGRAM]
# What a call does: arguments and value are JSON.
_JOB = """import json, sys
def run(count):
    return {"sum": sum(range(count))}
print(json.dumps(run(**json.loads(sys.argv[1]))))"""
_EXEC = [PYTHON, "-I", "-S", "-B", "-c", _JOB, '{"count": 100}']
_SETTLE_S = 0.6
_WARM_CALLS = 10  # a round: they are cheap


@dataclass(frozen=True)
class MeasuredWay:
    name: str
    go: Callable[[], object]
    times: int = 1  # a round
    settles: bool = True


def _check(text: str) -> None:
    if "4950" not in text:
        raise CannotMeasure(f"A call had the wrong answer: {text[-500:]}")


def run_docker(*flags: str) -> None:
    words = ["docker", "run", "--rm", *flags, "--entrypoint", PYTHON, get_image_name(), *_RUN]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasure(f"`docker run` failed: {done.stderr.strip()}")
    _check(done.stdout)


@contextmanager
def _kept_container() -> Iterator[str]:
    """What somebody would keep running to exec into."""
    name = f"toolhub-bench-{uuid.uuid4().hex[:8]}"
    wait = ["-I", "-S", "-c", "import time; time.sleep(1e6)"]
    words = [
        "docker",
        "run",
        "--detach",
        "--rm",
        "--network",
        "none",
        "--name",
        name,
        "--entrypoint",
        PYTHON,
        get_image_name(),
        *wait,
    ]
    if subprocess.run(words, capture_output=True).returncode:
        raise CannotMeasure("A container to exec into could not be started. Type:  make engine sandbox-image")
    try:
        yield name
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True)


def _exec(client: docker.APIClient, container: str) -> None:
    ran = client.exec_create(container, _EXEC)
    _check(bytes(client.exec_start(ran["Id"])).decode())


@contextmanager
def _ways() -> Iterator[list[MeasuredWay]]:
    with ExitStack() as stack:
        where = stack.enter_context(open_sandbox())
        kept = stack.enter_context(_kept_container())
        client = docker.APIClient(**docker.utils.kwargs_from_env())
        stack.callback(client.close)
        tool = BenchTool.of(TRIVIAL)

        def at(level: str) -> Callable[[], object]:
            return lambda: make_call(where, tool, level)

        ways = [
            MeasuredWay(SHARED, at("shared"), _WARM_CALLS, settles=False),
            MeasuredWay(FRESH, at("fresh"), _WARM_CALLS, settles=False),
            MeasuredWay(SINGLE, at("single")),
            MeasuredWay(COLD, at("cold")),
            MeasuredWay(EXEC, lambda: _exec(client, kept), settles=False),
            MeasuredWay(
                EXEC_CLI,
                lambda: _check(subprocess.check_output(["docker", "exec", kept, *_EXEC], text=True)),
                settles=False,
            ),
            MeasuredWay(DEFAULT, run_docker),
            MeasuredWay(CLOSED, lambda: run_docker("--network", "none")),
        ]
        try:
            ways.append(MeasuredWay(PEER, stack.enter_context(llm_sandbox_peer.open_pool(PROGRAM, _check))))
        except CannotMeasure as error:
            print(f"\nThe peer is NOT measured: {error}")
        yield ways


def measure_levels(rounds: int) -> dict[str, MeasuredTimes]:
    """Milliseconds by name, of every round after one that does not count."""
    with _ways() as ways:
        found: dict[str, list[float]] = {way.name: [] for way in ways}
        for number in range(rounds + 1):
            shift = number % len(ways)
            for way in ways[shift:] + ways[:shift]:
                for _ in range(way.times):
                    begun = time.perf_counter()
                    way.go()
                    if number:
                        found[way.name].append((time.perf_counter() - begun) * 1000)
                if way.settles:
                    time.sleep(_SETTLE_S)
    return {name: MeasuredTimes(name, ms) for name, ms in found.items()}
