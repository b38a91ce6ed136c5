"""The pipes of one run, with a clock that runs fast enough to wait for."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import run_monitor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LIMITS = {"result_bytes": 100, "artifact_bytes": 0, "log_bytes": 50, "log_flood_bytes": 1000, "idle_ms": 0}
REPORT, STDOUT, STDERR, PROGRESS = range(4)


class Pipes:
    """Four pipes, their writing ends, and what was told."""

    def __init__(self) -> None:
        self.pairs = [os.pipe() for _ in range(4)]
        self.told: list[tuple[str, bytes]] = []

    def watch(
        self,
        *,
        tell: bool = True,
        may_tell: Callable[[], bool] = lambda: True,
        is_spent: Callable[[], bool] = lambda: False,
        more_s: Callable[[], float] = lambda: 0.0,
        **limits: int,
    ) -> run_monitor.RunMonitor:
        reads = [read for read, _ in self.pairs]
        told: Any = lambda name, data: self.told.append((name, data))  # noqa: E731
        limits = LIMITS | limits
        options: Any = {"tell": told if tell else None, "may_tell": may_tell, "is_spent": is_spent}
        options["more_s"] = more_s
        return run_monitor.RunMonitor(*reads, limits=limits, report_extra=0, **options)

    def write(self, pipe: int, data: bytes) -> None:
        os.write(self.pairs[pipe][1], data)

    def write_later(self, pipe: int, data: bytes, after: float, times: int = 1) -> threading.Thread:
        def run() -> None:
            for _ in range(times):
                time.sleep(after)
                self.write(pipe, data)

        thread = threading.Thread(target=run)
        thread.start()
        return thread


@pytest.fixture
def pipes() -> Iterator[Pipes]:
    pipes = Pipes()
    yield pipes
    for _, write in pipes.pairs:
        os.close(write)


@pytest.fixture
def ends() -> Iterator[Callable[[], dict[int, Callable[[], str]]]]:
    """Something else that ends the run, at once when it is asked for."""
    read, write = os.pipe()

    def make() -> dict[int, Callable[[], str]]:
        os.write(write, b"x")
        return {read: lambda: run_monitor.EXITED}

    yield make
    os.close(read)
    os.close(write)


def soon(seconds: float = 0.3) -> float:
    return time.monotonic() + seconds


def test_what_ends_elsewhere_ends_the_run_and_what_is_in_the_pipes_is_kept(pipes: Pipes, ends: Any) -> None:
    run = pipes.watch()
    pipes.write(REPORT, b"report")
    pipes.write(STDOUT, b"out")
    pipes.write(STDERR, b"e" * 80)
    pipes.write(PROGRESS, b"{}\n")

    ended = run.finish(run.wait(ends(), load_until=soon(60), run_s=60))

    assert (ended, run.report, run.logs) == (run_monitor.EXITED, b"report", (b"out", b"e" * 50))
    assert sorted(pipes.told) == [("progress", b"{}\n"), ("stderr", b"e" * 50), ("stdout", b"out")]


def test_a_tool_has_until_its_deadline_from_when_it_is_loaded(pipes: Pipes) -> None:
    assert pipes.watch().wait({}, load_until=soon(), run_s=60) == run_monitor.LOAD_TIMED_OUT
    pipes.write(REPORT, b"L")
    assert pipes.watch().wait({}, load_until=soon(60), run_s=0.3) == run_monitor.TIMED_OUT


def test_silence_while_a_tool_is_loaded_is_not_its_own(pipes: Pipes) -> None:
    run = pipes.watch(idle_ms=100)

    assert run.wait({}, load_until=soon(0.6), run_s=60) == run_monitor.LOAD_TIMED_OUT


def test_a_load_that_has_spent_what_it_may_is_not_waited_for(pipes: Pipes) -> None:
    run = pipes.watch(is_spent=lambda: True)
    begun = time.monotonic()

    assert run.wait({}, load_until=soon(60), run_s=60) == run_monitor.LOAD_TIMED_OUT
    assert time.monotonic() - begun < 30


def test_a_run_that_has_spent_what_it_may_is_ended_though_nothing_happens(pipes: Pipes) -> None:
    pipes.write(REPORT, b"L")

    assert pipes.watch(is_spent=lambda: True).wait({}, load_until=soon(60), run_s=60) == run_monitor.SPENT


def test_importing_may_take_as_much_longer_as_is_given_when_its_time_is_over(pipes: Pipes) -> None:
    def more_s() -> float:
        pipes.write(REPORT, b"L")
        return 60.0

    assert pipes.watch(more_s=more_s).wait({}, load_until=soon(0), run_s=0.05) == run_monitor.TIMED_OUT


def test_what_is_given_is_of_all_the_time_of_importing_and_not_of_each_look(pipes: Pipes) -> None:
    assert pipes.watch(more_s=lambda: 0.1).wait({}, load_until=soon(0), run_s=60) == run_monitor.LOAD_TIMED_OUT


@pytest.mark.parametrize("pipe", [STDOUT, STDERR, PROGRESS])
def test_silence_ends_a_run_and_any_word_breaks_it(pipes: Pipes, pipe: int) -> None:
    run = pipes.watch(idle_ms=300)
    pipes.write(REPORT, b"L")
    speaker = pipes.write_later(pipe, b"x", 0.1, times=6)

    assert run.wait({}, load_until=soon(60), run_s=60) == run_monitor.IDLED

    speaker.join()
    assert run.finish(run_monitor.IDLED) == run_monitor.IDLED
    assert b"".join(data for _, data in pipes.told) == b"xxxxxx"


def test_a_report_is_no_word(pipes: Pipes) -> None:
    run = pipes.watch(idle_ms=200)
    speaker = pipes.write_later(REPORT, b"x", 0.05, times=10)

    assert run.wait({}, load_until=soon(60), run_s=60) == run_monitor.IDLED

    assert len(run.report) < 10
    speaker.join()


@pytest.mark.parametrize(
    ("pipe", "size", "ended"),
    [
        (REPORT, 101, run_monitor.RESULT_TOO_LARGE),
        (STDOUT, 1001, run_monitor.LOG_FLOOD),
        (PROGRESS, 1001, run_monitor.LOG_FLOOD),
    ],
)
def test_too_much_ends_a_run(pipes: Pipes, pipe: int, size: int, ended: str) -> None:
    run = pipes.watch()
    pipes.write(pipe, b"x" * size)

    assert run.finish(run.wait({}, load_until=soon(60), run_s=60)) == ended


def test_a_run_that_ended_with_too_much_in_its_pipes_is_said_to_have(pipes: Pipes, ends: Any) -> None:
    run = pipes.watch()

    ended = run.wait(ends(), load_until=soon(60), run_s=60)
    pipes.write(STDERR, b"x" * 1001)

    assert run.finish(ended) == run_monitor.LOG_FLOOD


def test_it_is_told_in_few_pieces_and_only_when_asked(pipes: Pipes) -> None:
    run = pipes.watch()
    for _ in range(20):
        pipes.write(STDOUT, b"x")
    speaker = pipes.write_later(STDOUT, b"y", 0.15)

    run.wait({}, load_until=soon(0.4), run_s=60)

    assert pipes.told == [("stdout", b"x" * 20), ("stdout", b"y")]
    speaker.join()


def test_who_does_not_listen_is_told_at_the_end(pipes: Pipes) -> None:
    run = pipes.watch(may_tell=lambda: False)
    pipes.write(STDOUT, b"x")

    run.wait({}, load_until=soon(0.2), run_s=60)
    told = list(pipes.told)
    run.finish(run_monitor.EXITED)

    assert told == []
    assert pipes.told == [("stdout", b"x")]


def test_nothing_is_told_unless_asked(pipes: Pipes, ends: Any) -> None:
    run = pipes.watch(tell=False)
    pipes.write(STDOUT, b"x")

    run.finish(run.wait(ends(), load_until=soon(60), run_s=60))

    assert pipes.told == []
    assert run.logs == (b"x", b"")
