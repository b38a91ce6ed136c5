"""The process of a call is made by a system call of ours, not by the C library's fork: does everything in it work as after one?"""

from __future__ import annotations

import json
import signal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.isolation.seccomp import build_profile
from sandbox import run_monitor
from tests.contracts.test_box import LEVELS, REUSED, box_of, once

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.box_driver import DrivenBox

__all__ = ["box_of"]
PYTHON = "/usr/bin/python3.11"

WHO = """
import first, os
def run():
    numbers = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {"number": int(numbers["Pid"]), "parent": int(numbers["PPid"]), "own": os.getpid(), "of the parent": os.getppid()}
"""
HARMLESS = ""
A_THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()"
A_LIBRARY_THAT_ASKS = "import mmap, os\nHELD = mmap.mmap(os.open('/deps/library', os.O_RDONLY), 0, prot=mmap.PROT_READ)"


@pytest.fixture
def dependencies(tmp_path: Path) -> Path:
    folder = tmp_path / "deps"
    folder.mkdir()
    (folder / "first.py").write_text(HARMLESS)
    (folder / "library").write_bytes(b"\x7fELF" + bytes(5000) + b"\0__register_atfork\0")
    return folder


@pytest.mark.req("SVC-10")
@pytest.mark.parametrize("level", REUSED)
@pytest.mark.parametrize(
    ("first", "made"), [(HARMLESS, 1), (A_THREAD, 2), (A_LIBRARY_THAT_ASKS, 2)], ids=["none", "a thread", "a library"]
)
def test_the_supervisor_is_the_parent_and_only_where_it_must_be_is_another_process_made_for_that(
    box_of: Callable[..., DrivenBox], dependencies: Path, level: str, first: str, made: int
) -> None:
    (dependencies / "first.py").write_text(first)
    box = box_of(binds=[f"{dependencies}:/deps:ro"])
    loaded = box.load({"main": WHO}, level=level)
    assert loaded["preloaded"][:1] == ["first"], loaded

    said: list[Any] = [box.call().value for _ in range(3)]

    assert {each["parent"] for each in said} == {1}
    assert {each["of the parent"] for each in said} == {0 if level == "fresh" else 1}
    assert all(each["own"] == (1 if level == "fresh" else each["number"]) for each in said)
    assert [after["number"] - before["number"] for before, after in pairwise(said)] == [made, made]


@pytest.mark.req("SVC-10")
def test_where_the_engine_does_not_let_it_through_there_are_two_forks(
    box_of: Callable[..., DrivenBox], dependencies: Path, tmp_path: Path
) -> None:
    profile = build_profile(fresh=True)
    rules = profile["syscalls"]
    profile["syscalls"] = [rule for rule in rules if rule["names"] != ["clone"] or "valueTwo" in rule["args"][0]]
    assert len(profile["syscalls"]) == len(rules) - 1
    (tmp_path / "seccomp.json").write_text(json.dumps(profile))
    box = box_of(binds=[f"{dependencies}:/deps:ro"], seccomp=tmp_path / "seccomp.json")
    assert box.load({"main": WHO}, level="fresh")["ok"]

    first, second = (box.call().value for _ in range(2))

    assert (first["parent"], first["own"], second["number"] - first["number"]) == (1, 1, 2)


THREADS = """
import ctypes, os, signal, threading
libc = ctypes.CDLL(None, use_errno=True)
def run():
    lock, done = threading.RLock(), []
    def add(number):
        with lock, lock:
            done.append(number)
    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    with lock, lock:
        for thread in threads: thread.start()
        held = list(done)
    for thread in threads: thread.join()
    kind, mutex = ctypes.create_string_buffer(64), ctypes.create_string_buffer(64)
    libc.pthread_mutexattr_init(kind), libc.pthread_mutexattr_settype(kind, 1)  # recursive: it knows its owner by number
    libc.pthread_mutex_init(mutex, kind)
    own = [libc.pthread_mutex_lock(mutex), libc.pthread_mutex_lock(mutex)]
    others = []
    other = threading.Thread(target=lambda: others.append(libc.pthread_mutex_trylock(mutex)))
    other.start(), other.join()
    head, size = ctypes.c_void_p(), ctypes.c_size_t()
    robust = libc.syscall({"x86_64": 274, "aarch64": 100}[os.uname().machine], 0, ctypes.byref(head), ctypes.byref(size))
    heard = []
    signal.signal(signal.SIGUSR1, lambda *_: heard.append("raised"))
    signal.raise_signal(signal.SIGUSR1)  # which the C library sends to the number that it holds for this thread
    signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
    return {
        "held": held, "done": sorted(done), "own": own, "other": others, "owner": mutex.raw[8:12] == os.getpid().to_bytes(4, "little"),
        "robust": robust == 0 and bool(head.value) and size.value == 24, "heard": heard,
        "main": threading.main_thread() is threading.current_thread() and threading.get_native_id() == os.getpid(),
    }
"""


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize("level", LEVELS)
def test_threads_locks_and_signals_to_oneself_work(box_of: Callable[..., DrivenBox], level: str) -> None:
    said = once(box_of(), THREADS, level=level)

    assert said.value == {
        "held": [],
        "done": [0, 1, 2, 3, 4, 5, 6, 7],
        "own": [0, 0],
        "other": [16],  # EBUSY
        "owner": True,
        "robust": True,
        "heard": ["raised", "raised"],
        "main": True,
    }, said
    assert said.clean


PROCESSES = """
import multiprocessing, os, random, subprocess, sys
def double(pipe, number):
    pipe.send((number * 2, os.getppid(), random.random()))
def run():
    sys.executable = "/usr/bin/python3.11"
    multiprocessing.set_executable(sys.executable)
    done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", "print(6 * 7)"], capture_output=True, text=True)
    found = {"subprocess": (done.stdout, done.returncode), "forked": [], "spawned": []}
    drawn = [random.random()]
    for kind, way in (("fork", "forked"), ("spawn", "spawned")):
        context = multiprocessing.get_context(kind)
        for number in (1, 2):
            mine, theirs = context.Pipe()
            child = context.Process(target=double, args=(theirs, number))
            child.start()
            value, parent, chance = mine.recv()
            child.join()
            drawn.append(chance)
            found[way].append((value, parent == os.getpid(), child.exitcode))
    pid = os.fork()
    if pid == 0: os._exit(7)
    found["fork"] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    found["chance"] = len(set(drawn))
    return found
"""


@pytest.mark.req("TOOLS-17")
@pytest.mark.parametrize("level", REUSED)
def test_a_tool_starts_processes_of_its_own(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of()
    assert box.load({"main": PROCESSES}, level=level, proc=[PYTHON])["ok"]

    said = box.call()

    assert said.value == {
        "subprocess": ["42\n", 0],
        "forked": [[2, True, 0], [4, True, 0]],
        "spawned": [[2, True, 0], [4, True, 0]],
        "fork": 7,
        "chance": 5,  # each has its own
    }, said


@pytest.mark.req("SVC-4")
@pytest.mark.parametrize("level", REUSED)
def test_how_it_ends_is_told_by_the_kernel_and_a_tool_that_aborts_aborts(
    box_of: Callable[..., DrivenBox], level: str
) -> None:
    aborted = once(box_of(), "import os\ndef run(): os.abort()", level=level)
    ended = once(box_of(), "import os\ndef run(): os._exit(9)", level=level)

    # The first process of a namespace is spared the signal, so the C library has it do what no process may.
    assert aborted.head["exit"].keys() == {"signal"}, aborted
    assert level == "fresh" or aborted.head["exit"] == {"signal": signal.SIGABRT}
    assert ended.head["exit"] == {"code": 9}, ended
    assert aborted.ended == ended.ended == run_monitor.EXITED


LIBRARIES = """
from pathlib import Path
def run():
    files = [path for folder in ("/usr", "/lib", "/opt/toolhub") for path in Path(folder).rglob("*") if path.is_file()]
    return sorted({path.resolve().name for path in files if b"_atfork" in path.read_bytes() and path.suffix not in (".py", ".pyc")})
"""


@pytest.mark.req("TOOLS-17")
def test_no_library_of_the_image_asks_to_be_called_around_a_fork(box_of: Callable[..., DrivenBox]) -> None:
    assert once(box_of(), LIBRARIES, level="shared").value == ["libc.so.6"]
