"""Places to write: where can a tool write? Every path of a box is tried, as the tool and as its user without the walls around
the tool.
"""

from __future__ import annotations

import json
import subprocess
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, RunStatus
from invocations.sandbox.engine import Engine
from tests.attacks.levels import MOSTLY_FRESH
from tests.support.sandboxes import call_of, package_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.attacks.arena import Arena

pytestmark = [pytest.mark.attack, MOSTLY_FRESH]

PYTHON = "/usr/local/bin/sandbox-python"
# As the user of the box, with the container's walls only. What is a folder may be written into, what is a file opened.
WALK = """
import json, os, stat
found, seen, nothing = [], [], os.stat("/dev/null").st_rdev
for folder, names, files in os.walk("/"):
    if folder == "/proc": names[:] = [name for name in names if not name.isdigit()]
    try: os.mkdir(folder + "/.attack"); os.rmdir(folder + "/.attack"); found.append(folder)
    except OSError: pass
    for path in (os.path.join(folder, name) for name in names + files):
        told = os.lstat(path)
        if stat.S_ISLNK(told.st_mode) or (told.st_rdev == nothing and path != "/dev/null"):
            continue  # what it leads to is walked itself; what is masked is /dev/null
        seen.append(path)
        if stat.S_ISDIR(told.st_mode): continue
        try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)); found.append(path)
        except OSError: pass
print(json.dumps([seen, found]))
"""
AS_A_TOOL = """
import os
def change_rights(path):
    before = os.stat(path).st_mode
    os.chmod(path, 0o777)
    if os.stat(path).st_mode == before: raise OSError

def run(places):
    found = []
    for path in places:
        for act in (
            lambda: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)),
            lambda: os.close(os.open(path + "/.attack", os.O_WRONLY | os.O_CREAT)),
            lambda: os.mkdir(path + "/.folder"),
            lambda: os.truncate(path, 0),
            lambda: os.rename(path, "/w/stolen"),
            lambda: os.link(path, "/w/same"),
            lambda: change_rights(path),
        ):
            try: act()
            except OSError: continue
            found.append(path)
            break
    return found
"""
AT_A_TIME = 500
DEVICES = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts/ptmx"}
ROOM = Limits(wall_ms=10_000)


def _running_box(arena: Arena) -> str:
    """A box of this arena: that of the last call where it is used again, else one that waits for its only call."""
    last: str = arena.run("innocent.run", limits=ROOM, number=1).box
    with closing(Engine()) as engine:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            running = {each["Id"] for each in arena.boxes(engine) if each["State"] == "running"}
            fit = running & {last} if arena.level in ("shared", "fresh") else running - {last}
            if fit:
                box: str = fit.pop()
                return box
            time.sleep(0.05)
    raise AssertionError("No box waits for a call.")


def _places(box: str) -> tuple[list[str], set[str]]:
    """(every path of the box, those that its user may write to)"""
    walk = ["docker", "exec", box, PYTHON, "-I", "-S", "-B", "-c", WALK]
    done = subprocess.run(walk, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    seen, found = json.loads(done.stdout)
    return seen, set(found)


@pytest.mark.req("SVC-10", "TOOLS-17")
def test_a_tool_can_write_to_its_scratch_space_and_nowhere_else(arena: Arena, tmp_path: Path) -> None:
    seen, by_its_user = _places(_running_box(arena))
    package = package_of(tmp_path, main=AS_A_TOOL)
    by_the_tool: set[str] = set()
    for begin in range(0, len(seen), AT_A_TIME):
        outcome = arena.do(call_of(package, places=seen[begin : begin + AT_A_TIME]), limits=ROOM)
        assert outcome.status is RunStatus.OK, outcome
        by_the_tool.update(outcome.value)

    assert {
        "/opt/toolhub/sandbox/call.py",
        "/etc",
        "/usr",
        "/dev/mqueue",
        "/proc/sys/kernel/core_pattern",
        "/w",
    } <= set(seen)
    assert by_its_user <= {"/w", "/p"} | {f"/dev/{name}" for name in DEVICES}
    # Where nobody comes after it, a tool may change the rights of its package's folder, which open nothing.
    assert by_the_tool - ({"/p"} if arena.level == "single" else set()) == {"/w", "/dev/null"}
    arena.see_that_all_is_well()
