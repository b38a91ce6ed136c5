"""Process loops: does each loop of the table run in exactly the kinds of process that its row names?"""

from __future__ import annotations

import inspect
import signal
import threading
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.utils.module_loading import import_string

from toolhub import celery, embedded_mode, loop_process, loops
from toolhub.loops import LOOPS, Loop, ProcessRole
from toolhub.management.commands import keep, upkeep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager


def rest_until_told(stop: threading.Event) -> None:
    stop.wait()


class Probed(Exception):
    """A process has started its loops and answers for them."""


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[dict[ProcessRole, Callable[[], list[str]]]]:
    """Starts each kind of process, with loops that do nothing; the names of the loops that its probes answer for."""
    found: list[str] = []

    def hear(threads: Sequence[threading.Thread]) -> None:
        assert all(thread.is_alive() for thread in threads)
        found[:] = [thread.name for thread in threads]

    def hear_and_end(threads: Sequence[threading.Thread]) -> None:
        hear(threads)
        raise Probed

    def run_command(command: Any) -> list[str]:
        with pytest.raises(Probed):
            command.Command().handle()
        return found

    def run_worker() -> list[str]:
        celery._start_loops()
        celery._stop()
        return found

    def run_embedded() -> list[str]:
        before = set(threading.enumerate())
        with embedded_mode.run_all_parts():
            hear([thread for thread in threading.enumerate() if thread not in before])
        return found

    def nothing(*_: object, **__: object) -> bool:
        return False

    def no_context() -> AbstractContextManager[None]:
        return nullcontext()

    settings.TOOLHUB_EMBEDDED, settings.TOOLHUB_WORKER_SENDS = False, False
    monkeypatch.setattr(loops, "LOOPS", [_harmless(loop) for loop in LOOPS])
    monkeypatch.setattr(loop_process, "serve_probes", hear_and_end)
    monkeypatch.setattr(celery, "offer_probes", hear)
    for name in ("start_sandbox", "offer_metrics", "import_providers", "start_collapses"):
        monkeypatch.setattr(celery, name, nothing)
    monkeypatch.setattr(embedded_mode, "start_sandbox", nothing)
    use_sandbox(monkeypatch, close=nothing)
    for name in ("worker_threads", "news_watch"):
        monkeypatch.setattr(embedded_mode, name, no_context)
    for name in ("refuse_foreign_keys", "make_signing_key", "make_instruments", "telemetry.setup_telemetry"):
        monkeypatch.setattr(f"toolhub.management.commands.keep.{name}", nothing)
    monkeypatch.setattr("toolhub.management.commands.keep.exposition.serve_metrics", nothing)
    for name in ("refuse_foreign_keys", "make_instruments", "telemetry.setup_telemetry", "exposition.serve_metrics"):
        monkeypatch.setattr(f"toolhub.management.commands.upkeep.{name}", nothing)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield {
        ProcessRole.WORKER: run_worker,
        ProcessRole.UPKEEP: lambda: run_command(upkeep),
        ProcessRole.KEEPER: lambda: run_command(keep),
        ProcessRole.EMBEDDED: run_embedded,
    }
    for number, handler in before.items():
        signal.signal(number, handler)


def use_sandbox(monkeypatch: pytest.MonkeyPatch, *, close: Callable[[], object]) -> None:
    for place in ("toolhub.embedded_mode", "invocations.sandbox.factory"):
        monkeypatch.setattr(f"{place}.current_sandbox", lambda: SimpleNamespace(close=close))


def _harmless(loop: Loop) -> Loop:
    return replace(loop, path=f"{__name__}.rest_until_told")


@pytest.mark.req("TOOLS-18")
def test_each_kind_of_process_runs_the_loops_whose_rows_name_it(
    processes: dict[ProcessRole, Callable[[], list[str]]],
) -> None:
    assert processes.keys() == set(ProcessRole)
    for role, run in processes.items():
        assert run() == [loop.name for loop in LOOPS if role in loop.roles], role


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("role", ProcessRole)
def test_a_row_is_all_that_a_new_loop_needs(
    role: ProcessRole, processes: dict[ProcessRole, Callable[[], list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Loop("new", f"{__name__}.rest_until_told", frozenset({role}))
    monkeypatch.setattr(loops, "LOOPS", [*loops.LOOPS, row])

    assert [kind for kind, run in processes.items() if "new" in run()] == [role]


@pytest.mark.req("TOOLS-18")
def test_a_worker_does_the_work_of_upkeep_too_and_sweeps_once(
    processes: dict[ProcessRole, Callable[[], list[str]]], settings: Any
) -> None:
    settings.TOOLHUB_WORKER_SENDS = True

    names = processes[ProcessRole.WORKER]()

    assert names == [loop.name for loop in LOOPS if loop.roles & {ProcessRole.WORKER, ProcessRole.UPKEEP}]
    assert len(names) == len(set(names))


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("role", [ProcessRole.WORKER, ProcessRole.EMBEDDED])
def test_loops_are_told_to_stop_before_the_boxes_go(
    role: ProcessRole, processes: dict[ProcessRole, Callable[[], list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(threading.enumerate())
    running: list[set[threading.Thread]] = []

    def close() -> None:
        for thread in set(threading.enumerate()) - before:
            thread.join(timeout=30)
        running.append(set(threading.enumerate()) - before)

    use_sandbox(monkeypatch, close=close)

    assert processes[role]()
    assert running == [set()]


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("role", [ProcessRole.WORKER, ProcessRole.EMBEDDED])
def test_loops_are_waited_for_also_when_the_boxes_do_not_go(
    role: ProcessRole, processes: dict[ProcessRole, Callable[[], list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(threading.enumerate())

    def close() -> None:
        raise OSError("the engine is away")

    use_sandbox(monkeypatch, close=close)

    with pytest.raises(OSError, match="away"):
        processes[role]()
    assert set(threading.enumerate()) <= before


@pytest.mark.req("TOOLS-18")
@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a_row_names_a_function_that_is_told_to_stop_and_a_process_that_runs_it(loop: Loop) -> None:
    first, *others = inspect.signature(import_string(loop.path)).parameters.values()
    assert first.name == "stop"
    assert all(each.default is not inspect.Parameter.empty for each in others)
    assert loop.roles


@pytest.mark.req("TOOLS-18")
def test_no_two_loops_have_one_name() -> None:
    assert len({loop.name for loop in LOOPS}) == len(LOOPS)


@pytest.mark.req("TOOLS-18")
def test_a_process_of_loops_ends_when_one_of_them_ended_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [_harmless(loop) for loop in LOOPS if ProcessRole.KEEPER in loop.roles]
    rows[0] = replace(rows[0], path="builtins.bool")  # ends at once
    monkeypatch.setattr(loops, "LOOPS", rows)
    monkeypatch.setattr(loop_process, "LOOKED_EVERY_S", 0)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        assert loop_process.run_loop_process(ProcessRole.KEEPER) == [rows[0].name]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
