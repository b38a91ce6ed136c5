"""Active runs: the calls that this process runs, and how one of them is ended."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from invocations.sandbox.pool.slots import BoxRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from invocations.sandbox.boxes.box import BoxConversation
    from invocations.sandbox.pool.slots import BoxTicket

CANCELLED = "The call was cancelled before the tool ran."


class ActiveRun:
    """One call: it waits for a box, or is in one. ``withdraw`` takes it out of the queue."""

    def __init__(self, withdraw: Callable[[BoxTicket[Any], Exception], bool]) -> None:
        self.cancelled = False
        self._withdraw = withdraw
        self._lock = threading.Lock()
        self._ticket: BoxTicket[Any] | None = None
        self._talk: BoxConversation | None = None

    def waits(self, ticket: BoxTicket[Any]) -> None:
        with self._lock:
            self._ticket = ticket
            if self.cancelled:
                self._withdraw(ticket, BoxRefused(CANCELLED, cancelled=True))

    def talks(self, talk: BoxConversation) -> None:
        with self._lock:
            self._talk = talk
            talk.cancelled = self.cancelled

    def ask_to_end(self) -> BoxConversation | None:
        """Returns the conversation that has to end, if it has begun."""
        with self._lock:
            self.cancelled = True
            if self._ticket is not None:
                self._withdraw(self._ticket, BoxRefused(CANCELLED, cancelled=True))
            talk = self._talk
        if talk is not None:
            talk.ask_to_end()
        return talk

    def cancel(self) -> None:
        """It has ended within a moment, or its box is given up."""
        talk = self.ask_to_end()
        if talk is not None:
            talk.insist()


class ActiveRuns:
    """The calls of this process by name."""

    def __init__(self) -> None:
        self._runs: dict[str, ActiveRun] = {}
        self._lock = threading.Lock()
        self._closed = False

    def begin(self, name: str, run: ActiveRun) -> bool:
        """False when nothing begins here any more."""
        with self._lock:
            if not self._closed:
                self._runs[name] = run
            return not self._closed

    def end(self, name: str) -> None:
        with self._lock:
            self._runs.pop(name, None)

    def get(self, name: str) -> ActiveRun | None:
        with self._lock:
            return self._runs.get(name)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        """End them all at once, and begin no more."""
        with self._lock:
            self._closed = True
            runs = list(self._runs.values())
        for run in runs:
            run.ask_to_end()
        for run in runs:
            run.cancel()


class StepClock:
    """The steps of one run, in milliseconds since it began."""

    def __init__(self) -> None:
        self._begun = time.perf_counter()
        self.steps: list[tuple[str, float, float]] = []

    def now(self) -> float:
        return self.at(time.perf_counter())

    def at(self, moment: float) -> float:
        return (moment - self._begun) * 1000

    def add(self, name: str, begin: float, end: float) -> None:
        """A step may be gone through again, with another box: then it is one that takes longer."""
        if self.steps and self.steps[-1][0] == name:
            begin = self.steps.pop()[1]
        self.steps.append((name, begin, end))

    def part(self, name: str, begin: float, end: float) -> None:
        """Of the last step, this part was another one."""
        whole, begun, ended = self.steps.pop()
        begin, end = max(begun, begin), min(ended, end)
        parts = (
            ((whole, begun, begin), (name, begin, end), (whole, end, ended))
            if begin < end
            else ((whole, begun, ended),)
        )
        self.steps += [each for each in parts if each[2] > each[1] or len(parts) == 1]

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        begin = self.now()
        try:
            yield
        finally:
            self.add(name, begin, self.now())
