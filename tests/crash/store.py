"""The store outside: what have the tools of a tested hub done in the world? A store outside, which remembers every run that
reached it.
"""

from __future__ import annotations

import json
import select
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.support.http_server import QuietHandler, serve_requests

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

LOOK_S = 0.1


@dataclass(slots=True)
class Store:
    """``effects``: of each call, and of each order whichever call it came with, how many took place. A key has its effect once;
    without one, each run has one.
    """

    port: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    effects: Counter[str] = field(default_factory=Counter)
    at_work: Counter[str] = field(default_factory=Counter)  # runs of a call that are alive
    most_at_once: Counter[str] = field(default_factory=Counter)
    most_of_tool: Counter[str] = field(default_factory=Counter)  # the same of all calls of a tool, by its last name
    let_go: threading.Event = field(default_factory=threading.Event)  # all that stay, before their time
    _keys: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def have_effect(self, call: str, key: str | None, order: str = "") -> dict[str, Any]:
        with self._lock:
            self.runs[call] += 1
            if key is None or (key and key not in self._keys):
                self.effects.update([call, order] if order else [call])
            if key:
                self._keys.add(key)
            return {"effects": self.effects[call]}

    def stay(self, connection: socket.socket, seconds: float) -> None:
        """Until the time is over, or the run has gone, or all are let go."""
        gone, until = select.poll(), time.monotonic() + seconds
        gone.register(connection, select.POLLIN)
        while not self.let_go.is_set() and (left := until - time.monotonic()) > 0:
            if gone.poll(1000 * min(left, LOOK_S)):
                return

    @contextmanager
    def alive(self, call: str, tool: str) -> Iterator[None]:
        with self._lock:
            for name, most in ((call, self.most_at_once), (tool, self.most_of_tool)):
                self.at_work[name] += 1
                most[name] = max(most[name], self.at_work[name])
        try:
            yield
        finally:
            with self._lock:
                self.at_work[call] -= 1
                self.at_work[tool] -= 1


@contextmanager
def open_store() -> Iterator[Store]:
    store = Store()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802  as http.server calls it
            said = json.loads(self.read_body())
            answer = {}
            if self.path == "/stay":
                with store.alive(said["call"], said["tool"].rpartition(".")[2]):
                    store.stay(self.connection, said["seconds"])
            else:
                answer = store.have_effect(said["call"], said["key"], said.get("order", ""))
            with suppress(OSError):
                self.write_answer(200, json.dumps(answer).encode())

    with serve_requests(Handler) as port:
        store.port = port
        yield store
