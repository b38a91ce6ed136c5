"""Idling of an embedded hub: the share of a core that it takes when nobody asks it anything.

``python -m bench.idle`` measures this alone. What its boxes take is the engine's, and they wait for their next call without a timer.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from bench.figures import CannotMeasure, judge_figure, print_table, run_part
from bench.hubs import run_embedded_hub

MOST_PERCENT = 1.0
LOOK_S, MEASURED_S = 15.0, 30.0
TICKS = os.sysconf("SC_CLK_TCK")
# In /proc/PID/stat behind the name, which may hold anything: the session, and the times of the process and of its children that ended.
SESSION, TIMES = 3, slice(11, 15)


def used_s(session: int) -> float:
    """The processor time of all processes that the hub's has started, those that ended too."""
    ticks, alive = 0, False
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(") ")[2].split()
        except OSError:  # it has ended since; whoever waited for it has its time
            continue
        if int(fields[SESSION]) == session:
            ticks += sum(int(each) for each in fields[TIMES])
            alive |= path.parent.name == str(session)
    if not alive:
        raise CannotMeasure("The hub has ended.")
    return ticks / TICKS


def percent_over(session: int, seconds: float) -> float:
    """Of one core, over this time."""
    before, begun = used_s(session), time.monotonic()
    time.sleep(seconds)
    return 100 * (used_s(session) - before) / (time.monotonic() - begun)


def until_it_rests(session: int) -> float:
    """Wait until what it takes no longer falls: its boxes are made, and what its start has written is sealed. Returns the seconds."""
    begun = time.monotonic()
    last = percent_over(session, LOOK_S)
    while (now := percent_over(session, LOOK_S)) < last:
        last = now
    return time.monotonic() - begun


def measure() -> list[list[str]]:
    """Started as `make run` does, with nothing switched off."""
    with run_embedded_hub() as (_, _, pid):
        rested = until_it_rests(pid)
        percent = percent_over(pid, MEASURED_S)
    print_table(
        f"An embedded hub that nobody asks anything, over {MEASURED_S:.0f} s",
        ("", "measured"),
        [["seen to rest after", f"{rested:.0f} s"], ["processor time, of one core", f"{percent:.2f} %"]],
    )
    what = f"an idle embedded hub ≤ {MOST_PERCENT:g} % of a core"
    return [judge_figure(what, f"{percent:.2f} %", reached=percent <= MOST_PERCENT)]


if __name__ == "__main__":
    sys.exit(run_part(measure))
