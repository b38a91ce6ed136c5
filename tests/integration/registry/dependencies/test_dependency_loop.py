"""Dependency loop: does the loop beside the worker build by itself, and does it go on whatever happens?"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kernel import loops
from registry.dependencies import builder, find_dependency_folder, process_runner
from registry.dependencies.builder import Builder
from tests.support.background_runs import wait_for
from tests.support.dependencies import FIRST, enabled, facts_of, nothing, state_of
from toolhub.loops import LOOPS, run_loops

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import ToolVersion
    from tests.conftest import Person

PATIENCE_S = 60  # for a loaded machine
[BUILDER] = [loop for loop in LOOPS if loop.name == "builder"]


@pytest.mark.req("SVC-9")
@pytest.mark.django_db(transaction=True)
def test_it_takes_a_version_from_its_submission_to_its_folder(
    submit: Callable[..., ToolVersion], operator: Person, wheels: Path
) -> None:
    version = submit(dependencies=FIRST)

    with run_loops(BUILDER):
        wait_for(lambda: state_of(version) == "locked", PATIENCE_S)
        enabled(version, operator)
        wait_for(lambda: state_of(version) == "ready", PATIENCE_S)

    assert find_dependency_folder(version) is not None
    assert facts_of(version) == ["locked", "queued", "started", "built"]


@pytest.mark.django_db(transaction=True)
def test_two_hosts_at_once_build_each_version_once_in_the_database(
    submit: Callable[..., ToolVersion], operator: Person, lock: list[str], settings: Any, tmp_path: Path
) -> None:
    version = submit(dependencies=FIRST, dependency_lock=lock)
    enabled(version, operator)

    with run_loops(BUILDER, BUILDER):
        wait_for(lambda: state_of(version) == "ready", PATIENCE_S)

    assert facts_of(version) == ["locked", "queued", "started", "built"]


@pytest.mark.unmapped
def test_it_goes_on_after_a_pass_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    passes: list[int] = []
    stop = threading.Event()

    def broken(_: Builder) -> bool:
        passes.append(1)
        if len(passes) == 3:
            stop.set()
        raise RuntimeError("broken")

    monkeypatch.setattr(builder, "EVERY_S", 0)
    monkeypatch.setattr(loops, "release_connection", nothing)
    monkeypatch.setattr(Builder, "pass_once", broken)

    builder.run_builder(stop)

    assert len(passes) == 3


# What it starts.


def is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_program_is_heard_on_both_streams_to_its_last_word(tmp_path: Path) -> None:
    heard: list[str] = []
    program = [
        sys.executable,
        "-c",
        "print('one'); import sys; sys.stdout.flush(); sys.stderr.write('two'); sys.exit(3)",
    ]

    status, said = process_runner.run_program(
        program, env={}, cwd=tmp_path, within_s=60, hear=heard.append, beat=nothing
    )

    assert (status, said, heard) == (3, ["one", "two"], ["one", "two"])


def test_a_program_ends_with_its_children_when_nobody_wants_it_any_more(tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    child = (
        "import subprocess, sys, time\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(p.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    heard: list[str] = []

    def beat() -> None:
        if heard:
            raise Enough

    with pytest.raises(Enough):
        process_runner.run_program(
            [sys.executable, "-c", child], env={}, cwd=tmp_path, within_s=600, hear=heard.append, beat=beat
        )

    wait_for(lambda: not is_alive(heard[0]))


def test_a_program_ends_when_its_time_is_over(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import time; time.sleep(600)"]

    with pytest.raises(process_runner.TookTooLong):
        process_runner.run_program(program, env={}, cwd=tmp_path, within_s=0.01, hear=nothing, beat=nothing)


def test_a_program_that_wants_all_memory_does_not_get_it(tmp_path: Path) -> None:
    bounded = "import resource\nwhile resource.getrlimit(resource.RLIMIT_AS)[0] < 0: pass\n"
    program = [sys.executable, "-c", f"{bounded}b = bytearray(8 * 2**30)"]

    status, said = process_runner.run_program(program, env={}, cwd=tmp_path, within_s=60, hear=nothing, beat=nothing)

    assert status != 0
    assert "MemoryError" in said
