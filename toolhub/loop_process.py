"""Loop process: one whose whole work is its loops, as the keeper's and upkeep's is."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from toolhub.loops import run_loops, select_loops
from toolhub.probes.server import serve_probes

if TYPE_CHECKING:
    from toolhub.loops import ProcessRole

LOOKED_EVERY_S = 5


def run_loop_process(role: ProcessRole) -> list[str]:
    """Run the loops of a role until a signal says to end, or one of them ended by itself; the names of those that did."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with run_loops(*select_loops(role)) as loops:
        serve_probes(loops.threads)
        while not stop.wait(LOOKED_EVERY_S):
            if dead := [thread.name for thread in loops.threads if not thread.is_alive()]:
                return dead
    return []
