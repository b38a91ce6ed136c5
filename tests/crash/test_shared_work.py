"""Batches: is every call ended once where a worker is killed while one of its threads claims or commits for several?"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pytest

from kernel.ids import decode
from tests.crash.plan import (
    AFTER_THE_TOOL,
    BATCHES_PLANNED,
    BEFORE_THE_TOOL,
    KEYED,
    NONE,
    ONCE,
    READ,
    Batch,
    Fate,
    name_of,
)
from tests.crash.world import ATTEMPTS, OPEN, World, armed, some_key
from tests.e2e.processes import until
from tests.e2e.wire import in_background

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.wire import Answer

KINDS = (KEYED, NONE, READ, READ)  # of calls that are made at once: as many as one tenant has places
RUNS_S = 25  # at most: they are let go together
LEASE_S = "20"  # an End may wait so long for its turn
CLAIMS, *COMMITS = BATCHES_PLANNED


class StopPoint:
    """A worker that stands still at a point until it is let go, and notes who waits behind."""

    def __init__(self, folder: Path) -> None:
        self._go, self._notes = folder / "go", folder / "notes"
        self.let_go()

    def faults(self, at: str, killed_at: str) -> dict[str, str]:
        return {at: f"stop:{self._go}", "turns.waits": f"note:{self._notes}", killed_at: "kill"}

    def close(self) -> None:
        self._go.unlink()
        self._notes.write_text("")

    def let_go(self) -> None:
        self._go.touch()

    def waiting(self) -> int:
        return len(self._notes.read_text().splitlines())


@contextmanager
def killed_worker(world: World, faults: dict[str, str]) -> Iterator[dict[str, str]]:
    """A worker with calls of each kind, by key, that is killed at the end of the block."""
    worker = world.hub.use_worker(TOOLHUB_LEASE_S=LEASE_S, **armed(faults))
    kinds = {some_key(): kind for kind in KINDS}
    callers = [in_background(partial(world.call, kind, key, seconds=RUNS_S)) for key, kind in kinds.items()]
    yield kinds
    world.store.let_go.set()
    world.check_killed(worker)
    world.check_no_box_is_left()
    world.worker()
    for caller in callers:
        caller.thread.join()


def fate_of(world: World, answer: Answer) -> Fate:
    call_id = answer.call_id
    attempts = world.hub.count(ATTEMPTS, decode("inv", call_id))
    return Fate(answer.json()["call"]["state"], world.store.runs[call_id], attempts)


def find_fates(world: World, kinds: dict[str, str]) -> list[tuple[str, Fate]]:
    """What became of each call, once the whole hub is as if nothing had happened."""
    found = []
    until(lambda: world.hub.count(OPEN) == 0, "no call goes on")
    for key, kind in kinds.items():
        answer = world.stable_answer(kind, key, seconds=RUNS_S)
        assert world.calls_of_key(key) == [answer.call_id]
        fate = fate_of(world, answer)
        world.check_fate(answer, fate, kind)
        found.append((kind, fate))
    return found


@pytest.mark.req("TOOLS-18", "TOOLS-20", "SPEC-9")
@pytest.mark.parametrize("batch", COMMITS, ids=name_of)
def test_ends_that_are_committed_together_are_all_there_or_none(batch: Batch, world: World, tmp_path: Path) -> None:
    """The first is on its way alone and arrives; the three others wait for it, and are one transaction. (The first may have been the
    claim of a thread that found no call; then one of the four ran to its End, or not, as the worker was killed.)
    """
    point = StopPoint(tmp_path)
    with killed_worker(world, point.faults("commits.alone", batch.point)) as kinds:
        until(lambda: world.store.at_work.total() // 2 == len(KINDS), "all of them run")
        point.close()
        world.store.let_go.set()
        until(lambda: point.waiting() >= len(KINDS) - 1, "the others wait for the first End")
        point.let_go()

    found = find_fates(world, kinds)

    assert all(fate in (ONCE, AFTER_THE_TOOL[kind]) for kind, fate in found)
    alike = [sum(fate == fates[kind] for kind, fate in found) for fates in batch.fates]
    assert max(alike) >= len(KINDS) - 1


@pytest.mark.req("TOOLS-18", "TOOLS-20", "SPEC-9")
def test_calls_that_were_claimed_together_are_lost_as_those_that_were_claimed_alone(
    world: World, tmp_path: Path
) -> None:
    """Whoever came first claims alone, and what it got may come to anything. Of the others two are claimed at once: calls may take
    long.
    """
    point = StopPoint(tmp_path)
    point.close()
    with killed_worker(world, point.faults("claim.before_commit", CLAIMS.point)) as kinds:
        until(lambda: point.waiting() >= len(KINDS) - 1, "the others wait for the first claim")
        point.let_go()

    found = find_fates(world, kinds)

    assert all(fate in (ONCE, BEFORE_THE_TOOL[kind], AFTER_THE_TOOL[kind]) for kind, fate in found)
    assert sum(fate == BEFORE_THE_TOOL[kind] for kind, fate in found) >= 2
    assert sum(fate == ONCE for _, fate in found) >= 1
