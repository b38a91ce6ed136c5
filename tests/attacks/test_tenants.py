"""Attacks across tenants: can the tool of one tenant take anything from another tenant that runs at the same time?

The kernel keeps some accounts by user, not by container: pages of pipes, watches, processes, pending signals. Boxes that
shared a user would pay for each other.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, RunStatus
from tests.attacks.arena import ACME, OTHER
from tests.attacks.levels import MOSTLY_FRESH
from tests.support.sandboxes import call_of, package_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.attacks.arena import Arena

pytestmark = [pytest.mark.attack, MOSTLY_FRESH]

LONG = Limits(wall_ms=6_000)
GREEDY = """
import ctypes, fcntl, os, signal, threading, time
libc = ctypes.CDLL(None)
HELD = []

def pipes():
    try:
        while True:
            ends = os.pipe()
            HELD.append(ends)
            fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, 1 << 20)
    except OSError:
        pass

def watches():
    while libc.inotify_init1(0) >= 0: pass

def processes():
    try:
        while True:
            if os.fork() == 0: time.sleep(30); os._exit(0)
    except OSError:
        pass

def threads():
    try:
        while True: threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
    except RuntimeError:
        pass

def pending():
    signal.pthread_sigmask(signal.SIG_BLOCK, range(34, 65))
    while libc.sigqueue(os.getpid(), 40, None) == 0: pass

def timers():
    timer = ctypes.c_void_p()
    until = time.monotonic() + 0.5
    while libc.timer_create(0, None, ctypes.byref(timer)) == 0 and time.monotonic() < until: pass

def run(kind):
    pid = os.fork()
    if pid == 0:
        globals()[kind]()
        time.sleep(30)
        os._exit(0)
    time.sleep(1.5)
    print("taken", flush=True)
    return []
"""
MODEST = """
import ctypes, fcntl, os, threading
libc = ctypes.CDLL(None)

def run(kind):
    inlet, outlet = os.pipe()
    children = []
    for _ in range(20):
        child = os.fork()
        if child == 0: os._exit(0)
        children.append(os.waitpid(child, 0)[1])
    threads = [threading.Thread(target=int) for _ in range(20)]
    for thread in threads: thread.start()
    timer = ctypes.c_void_p()
    return {
        "pipe": fcntl.fcntl(outlet, fcntl.F_GETPIPE_SZ),
        "larger pipe": fcntl.fcntl(outlet, fcntl.F_SETPIPE_SZ, 1 << 20),
        "watches": sum(libc.inotify_init1(0) >= 0 for _ in range(20)),
        "children": children,
        "timer": libc.timer_create(0, None, ctypes.byref(timer)),
    }
"""
WELL = {"pipe": 65_536, "larger pipe": 1 << 20, "watches": 20, "children": [0] * 20, "timer": 0}


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize("kind", ["pipes", "watches", "processes", "threads", "pending", "timers"])
def test_what_the_kernel_counts_by_user_is_not_shared(kind: str, arena: Arena, tmp_path: Path) -> None:
    greedy, modest = package_of(tmp_path, main=GREEDY), package_of(tmp_path, main=MODEST)
    alone = arena.do(call_of(modest, kind=kind), tenant=OTHER, limits=LONG)
    outcomes = []
    thread = threading.Thread(
        target=lambda: outcomes.append(arena.do(call_of(greedy, kind=kind), tenant=ACME, limits=LONG))
    )
    thread.start()
    while thread.is_alive():
        beside = arena.do(call_of(modest, kind=kind), tenant=OTHER, limits=LONG)
        assert (beside.status, beside.value) == (RunStatus.OK, WELL), beside
    thread.join()

    assert alone.value == WELL
    assert outcomes[0].status is RunStatus.OK, outcomes[0]
    arena.see_that_all_is_well()


def test_tenants_of_one_tool_at_the_same_time_never_meet(arena: Arena, tmp_path: Path) -> None:
    package = package_of(
        tmp_path,
        main="import os\nfrom unitools import runtime\n"
        "def run(word):\n    print(word)\n    open('/w/' + word, 'w').close()\n"
        "    return [word, runtime.config()['canary'] == runtime.secret('CANARY'), os.listdir('/w')]",
    )

    def one(number: int) -> tuple[int, str]:
        word = f"word-{number}"
        outcome = arena.do(call_of(package, word=word), tenant=(ACME, OTHER)[number % 2])
        assert (outcome.status, outcome.value, outcome.stdout) == (RunStatus.OK, [word, True, [word]], f"{word}\n")
        return number % 2, outcome.box

    with ThreadPoolExecutor(4) as pool:
        seen = set(pool.map(one, range(24)))

    assert {box for tenant, box in seen if tenant} & {box for tenant, box in seen if not tenant} == set()
