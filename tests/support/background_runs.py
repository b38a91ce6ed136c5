"""A run in another thread, from the moment its tool runs."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import Limits, Profile, RunEvent, RunOutcome, Sandbox
from tests.support.sandboxes import call_of, package_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE_S = 60.0
SAYS_THAT_IT_RUNS = """
import time
from unitools import runtime
def run(seconds=60):
    runtime.progress(0.5, "here")
    time.sleep(seconds)
    return "awake"
"""


def wait_for(condition: Callable[[], Any], seconds: float = PATIENCE_S) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "It did not happen in time."
        time.sleep(0.02)


class Background:
    """``wait=False``: do not wait until the tool runs; it may not for a while."""

    def __init__(self, sandbox: Sandbox, folder: Path, *, wait: bool = True, **arguments: Any) -> None:
        self.call = call_of(package_of(folder, main=SAYS_THAT_IT_RUNS), **arguments)
        self._sandbox = sandbox
        self._outcomes: list[RunOutcome] = []
        self._runs = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if wait:
            assert self._runs.wait(PATIENCE_S), self._outcomes

    def _run(self) -> None:
        def told(_: RunEvent) -> None:
            self._runs.set()

        self._outcomes.append(self._sandbox.run(Profile(Limits(wall_ms=60_000)), self.call, told))

    @property
    def runs(self) -> bool:
        return self._runs.is_set()

    def outcome(self) -> RunOutcome:
        self._thread.join(PATIENCE_S)
        return self._outcomes[0]
