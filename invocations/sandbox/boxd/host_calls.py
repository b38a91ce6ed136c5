"""Host calls: which calls run on this host, and whose they are.

A call belongs to the worker whose connection brought it, by the name in its certificate; nobody else ends it.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class NotYours(Exception):
    """The call is another worker's. The message says so."""


class NotBegun(Exception):
    """The call does not begin here. The message says why."""

    def __init__(self, message: str, *, draining: bool) -> None:
        super().__init__(message)
        self.draining = draining


class HostCalls:
    """May be used from many threads."""

    def __init__(self) -> None:
        self._workers: dict[str, str] = {}  # by the name of the call
        self._leaving = 0  # outcomes of calls that have ended
        self._changed = threading.Condition()
        self._draining = False

    @property
    def draining(self) -> bool:
        return self._draining

    def begin(self, name: str, worker: str) -> None:
        with self._changed:
            if self._draining:
                raise NotBegun("The daemon of this host ends, and begins no call any more.", draining=True)
            if name in self._workers:
                raise NotBegun(f"A call of the name {name} runs here already.", draining=False)
            self._workers[name] = worker

    @contextmanager
    def end(self, name: str) -> Iterator[None]:
        """The call has ended, and its outcome leaves within the block: whoever drains closes the connections, and waits for that."""
        with self._changed:
            self._workers.pop(name, None)
            self._leaving += 1
        try:
            yield
        finally:
            with self._changed:
                self._leaving -= 1
                self._changed.notify_all()

    def check_may_end(self, name: str, worker: str) -> bool:
        """Whether there is such a call; :class:`NotYours`, when it is not this worker's."""
        with self._changed:
            owner = self._workers.get(name)
        if owner not in (None, worker):
            raise NotYours(f"The call {name} is another worker's, and {worker} may not end it.")
        return owner is not None

    def count(self) -> int:
        with self._changed:
            return len(self._workers) + self._leaving

    def drain(self, within_s: float) -> bool:
        """Begin none any more. Whether the last has ended by then, and its outcome has left."""
        with self._changed:
            self._draining = True
            return self._changed.wait_for(lambda: not self._workers and not self._leaving, within_s)
