"""Idle figures: is the processor time of a whole hub counted, with that of the processes it starts, whatever they are called?"""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.figures import CannotMeasure
from bench.idle import used_s

SPENT_S = 0.3
# A name with the brackets of /proc, a child that ends, and one that stays.
WORK = f"""
import os, pathlib, sys, time
pathlib.Path("/proc/self/comm").write_text("a) R 1 1")
def spend():
    while time.process_time() < {SPENT_S}: pass
for stays in (False, True):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        spend()
        os.write(write, b"x")
        if stays: sys.stdin.read()
        os._exit(0)
    os.read(read, 1)
    if not stays: os.waitpid(child, 0)
print("spent", flush=True)
sys.stdin.read()
"""


def test_what_children_take_is_counted_while_they_run_and_when_they_have_ended() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORK],
        start_new_session=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"spent\n"
        used = used_s(process.pid)

    assert used >= 2 * SPENT_S - 0.1, "in clock ticks"
    with pytest.raises(CannotMeasure, match="has ended"):
        used_s(process.pid)
