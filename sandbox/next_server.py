"""Next server: the server of others that answers the next call, started before that call comes.

It has begun, said which tools it has, and been held against what was reviewed. Then it is stopped, so that it takes nothing of the
machine, until the call comes; and it answers that one and no other. A call that comes earlier takes it over as far as it is. Where
it could not be started, or the call is a replay, which has a time and a chance of its own, the call starts one of its own.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress

from sandbox.mcp_server import McpServer
from unitools.mcp_conversation import ServerUnfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sandbox.server_process import ServerProcess

_SORTED = json.JSONEncoder(sort_keys=True)


class _Unneeded(Exception):
    """The call that came needs a server of its own."""


class NextServer:
    """``listing``: the text of what was reviewed, as the package has it."""

    def __init__(self, start: dict[str, Any], listing: bytes) -> None:
        self._start, self._listing = start, listing
        self._server: McpServer | None = None
        self._begun: ServerProcess | None = None
        self._begun_at = 0.0
        self._unlike: set[str] = set()  # what it lists otherwise than it was reviewed

    def make_ready(self, end: int, take: Callable[[], bool]) -> None:
        """Start it, until it is ready or has failed. ``end``: where the call comes, which ``take`` takes; false: it needs another."""

        def take_once() -> bool:
            if not take():
                raise _Unneeded
            return False

        try:
            server = self._server = McpServer(self._start)
            server.make_ready()
            self._begun_at = time.monotonic()
            self._begun = server.begin(int.from_bytes(os.urandom(16), "big"), closes=(end,))
            self._begun.talk.watch_beside(end, take_once)
            self._begun.talk.initialize()
            self._compare(self._begun.talk.list_tools())
            self._begun.talk.watch_alone()
            self._begun.stop()
        except (Exception, SystemExit):  # also of a module of the server: the call will meet it again, and tell
            self.drop()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Those that lead to it."""
        return self._begun.descriptors if self._begun is not None else ()

    def find_entry(self, head: dict[str, Any]) -> Callable[..., Any]:
        """What answers the call. ``LookupError``: as the server's own."""
        asks = head["asks"]
        if self._server is None or self._begun is None or not asks:
            self.drop()
            return McpServer(self._start).find_entry(head)
        if asks["tool"] in self._unlike:
            self.drop()
            raise ServerUnfit(f"The server lists {asks['tool']} otherwise than it was reviewed, so it was not asked.")
        return self._server.find_entry(head, self._begun)

    def waited_ms(self) -> int | None:
        """It goes on. For how long it has been there; None: the call begins its own."""
        if self._begun is not None and not self._begun.go_on():
            self.drop()
        return None if self._begun is None else round((time.monotonic() - self._begun_at) * 1000)

    def drop(self) -> None:
        if self._begun is not None:
            begun, self._begun = self._begun, None
            begun.drop()

    def _compare(self, tools: list[dict[str, Any]]) -> None:
        said = {str(entry.get("name")): _SORTED.encode(entry) for entry in tools}
        pinned: dict[str, str] = {}
        with suppress(ValueError, LookupError, TypeError):
            pinned = {entry["name"]: _SORTED.encode(entry) for entry in json.loads(self._listing)["tools"]}
        self._unlike = {name for name in {*said, *pinned} if said.get(name) != pinned.get(name)}
        if self._unlike:
            print(
                f"The server's list is not the one that was reviewed: {len(self._unlike)} tools differ.",
                file=sys.stderr,
            )
