"""Turns: how threads that want the same kind of work have one of them do it for several.

One piece is under way at a time. Who comes while none is does its own at once; those who come meanwhile wait, and when it is over the
first of them does theirs and that of all who wait with it. So nobody waits for company, and a crowd needs fewer pieces of work than
it has threads.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar

from kernel.fault_injection import inject_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Wanted = TypeVar("Wanted")


class _Turn(Generic[Wanted]):
    """``group``: those whose work this thread does, itself first; empty while it waits, and where another has done it."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.group: list[_Turn[Wanted]] = []
        # The wait for it; most threads find nobody at it, and wait for nothing.
        self.is_over: threading.Event | None = None

    def begin(self, group: list[_Turn[Wanted]]) -> None:
        self.group = group
        self.end_wait()

    def end_wait(self) -> None:
        if self.is_over is not None:
            self.is_over.set()


class Turns(Generic[Wanted]):
    """``fits``: whether the work of one can be done with that of the other; if it is not said, all can."""

    def __init__(self, fits: Callable[[Wanted, Wanted], bool] | None = None) -> None:
        self._fits = fits
        self._lock = threading.Lock()
        self._is_busy = False
        self._waiting: list[_Turn[Wanted]] = []

    @contextmanager
    def take(self, mine: Wanted) -> Iterator[list[Wanted]]:
        """What is to be done within the block, ``mine`` first; empty where another thread has had a turn that ``mine`` was part of."""
        turn = _Turn(mine)
        try:
            with self._lock:
                if self._is_busy:
                    turn.is_over = threading.Event()
                    self._waiting.append(turn)
                else:
                    self._is_busy = True
                    turn.begin([turn])
            if turn.is_over is not None:
                inject_fault("turns.waits")
                turn.is_over.wait()
            yield [each.wanted for each in turn.group]
        finally:
            self._leave(turn)

    def _leave(self, turn: _Turn[Wanted]) -> None:
        with self._lock:
            if turn in self._waiting:  # its wait was broken off: nobody is to do it any more
                self._waiting.remove(turn)
        if turn.group:
            self._pass_on(turn.group)

    def _pass_on(self, done: list[_Turn[Wanted]]) -> None:
        with self._lock:
            if self._waiting:
                first = self._waiting[0]
                group = [each for each in self._waiting if self._goes_with(first, each)]
                self._waiting = [each for each in self._waiting if each not in group]
                first.begin(group)
            else:
                self._is_busy = False
        for each in done[1:]:
            each.end_wait()

    def _goes_with(self, first: _Turn[Wanted], other: _Turn[Wanted]) -> bool:
        return other is first or self._fits is None or self._fits(first.wanted, other.wanted)
