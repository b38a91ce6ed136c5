"""One real box, driven directly: what a call may do to the next one, to the box, and to the kernel's patience."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from sandbox import run_monitor
from tests.contracts.test_box import LEVELS, REUSED, box_of, once
from tests.support.box_driver import ROOMY, DrivenBox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["box_of"]
SHORT = replace(ROOMY, wall_ms=1_500)

WALLS = """
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
def refused(result):
    return result != 0 and ctypes.get_errno() == 1
def run():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return {
        "capabilities": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "no_new_privileges": status["NoNewPrivs"].strip(), "filters": status["Seccomp_filters"].strip(),
        "pid": os.getpid(), "uid": [os.getuid() == os.geteuid() == os.getgid(), 200_000 <= os.getuid() < 300_000],
        "unshare": [refused(libc.unshare(flags)) for flags in (0x10000000, 0x3C020000, 0x38020000, 0x20000)],
        "mount": refused(libc.mount(b"none", b"/w", b"tmpfs", ctypes.c_ulong(14), None)),
        "umount": refused(libc.umount2(b"/w", 2)),
        "descriptors": sorted(map(int, os.listdir("/proc/self/fd")))[:5],
        "limits": [resource.getrlimit(name)[1] for name in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK)],
        "adjusted": open("/proc/self/oom_score_adj").read().strip(),
        "environment": open("/proc/self/environ", "rb").read().strip(b"\\0").decode(),
    }
"""


@pytest.mark.req("SVC-10", "TOOLS-17")
@pytest.mark.parametrize("level", LEVELS)
def test_every_wall_is_up_on_every_level(box_of: Callable[..., DrivenBox], level: str) -> None:
    seen: Any = once(box_of(), WALLS, level=level).value

    assert (seen.pop("pid") == 1) == (level == "fresh")
    assert seen.pop("filters") == ("3" if level == "fresh" else "2")  # what makes namespaces goes last
    assert seen == {
        "capabilities": [0, 0, 0, 0, 0],
        "no_new_privileges": "1",
        "uid": [True, True],
        "unshare": [True, True, True, True],
        "mount": True,
        "umount": True,
        "descriptors": [0, 1, 2, 3, 4],
        "limits": [0, 0],
        "adjusted": "1000",
        "environment": "",
    }


LEAVES_A_PROCESS = """
import os, signal, time
def run(how):
    if os.fork() == 0:
        if how == "new session": os.setsid()
        if how == "twice" and os.fork(): os._exit(0)
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
        time.sleep(60)
    return "left"
"""


@pytest.mark.parametrize("how", ["plain", "new session", "twice"])
@pytest.mark.parametrize(("level", "clean"), [("shared", False), ("fresh", True)])
def test_a_process_that_is_left_behind_ends_with_the_call_or_with_the_box(
    box_of: Callable[..., DrivenBox], level: str, clean: bool, how: str
) -> None:
    box = box_of()
    box.load({"main": LEAVES_A_PROCESS}, level=level)

    said = box.call(how=how)  # it holds the pipes of the call, and nobody waits for it

    assert (said.ended, said.value, said.clean) == (run_monitor.EXITED, "left", clean)
    if clean:
        assert box.call(how=how).value == "left"
    else:
        assert box.is_gone()


TOUCHES = """
import os
def run(act):
    before = os.stat("/p/tool/main.py").st_mode
    try:
        if act == "mode": os.chmod("/p/tool/main.py", 0)
        if act == "time": os.utime("/p/tool/main.py", (1, 1))
        if act == "both": os.chmod("/p", 0o777); open("/p/new", "w")
    except OSError as error:
        return error.errno
    return os.stat("/p/tool/main.py").st_mode == before
"""


@pytest.mark.parametrize(
    ("level", "act", "value", "clean"),
    [
        ("shared", "mode", True, True),  # nothing happens
        ("shared", "time", True, False),
        ("shared", "both", 13, True),
        ("fresh", "mode", 30, True),  # a read-only file system
        ("fresh", "time", 30, True),
        ("fresh", "both", 30, True),
    ],
)
def test_what_a_call_does_to_its_package_no_other_call_sees(
    box_of: Callable[..., DrivenBox], level: str, act: str, value: object, clean: bool
) -> None:
    box = box_of()
    box.load({"main": TOUCHES}, level=level)

    said = box.call(act=act)

    assert (said.value, said.clean) == (value, clean)
    if not clean:
        assert box.is_gone()


@pytest.mark.parametrize("level", REUSED)
@pytest.mark.parametrize(
    ("body", "ended"),
    [
        ("os.kill(os.getpid(), signal.SIGSTOP); time.sleep(60)", run_monitor.TIMED_OUT),
        ("while True:\n        try: os.fork()\n        except OSError: pass", run_monitor.TIMED_OUT),
        ("[os.close(fd) for fd in range(5)]; time.sleep(60)", run_monitor.TIMED_OUT),
        ("os.closerange(0, 5); os._exit(0)", run_monitor.EXITED),
        ("os.kill(0, signal.SIGKILL); time.sleep(60)", None),
        ("time.sleep(60) if os.fork() else [os.kill(os.getppid(), n) for n in (19, 9)]", None),
        ("while True: os.write(2, b'x' * 65536)", run_monitor.LOG_FLOOD),
        ("while True: os.write(4, b'x' * 65536)", run_monitor.LOG_FLOOD),
        ("while True: os.write(3, b'x' * 65536)", run_monitor.RESULT_TOO_LARGE),
    ],
)
def test_whatever_a_tool_does_ends_within_its_limits(
    box_of: Callable[..., DrivenBox], level: str, body: str, ended: str | None
) -> None:
    box = box_of(limits=SHORT)
    box.load({"main": f"import os, signal, time\ndef run():\n    {body}"}, level=level)

    said = box.call()

    assert said.ended in ((ended,) if ended else (run_monitor.EXITED, run_monitor.TIMED_OUT)), said
    assert said.head["run_ms"] < SHORT.wall_ms + 1_000
    assert said.value is None
    if not said.clean:
        assert box.is_gone()


@pytest.mark.parametrize("level", REUSED)
def test_processor_time_is_limited(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of(limits=replace(ROOMY, wall_ms=25_000, cpu_s=1))
    box.load({"main": "def run():\n    while True: pass"}, level=level)

    said = box.call()

    assert (said.ended, said.clean, said.head["exit"]) == (run_monitor.SPENT, False, {"signal": 9})
    assert said.head["cpu_ms"] > 1_000


CHAIN = """
import os, time
def run(links):
    done, end = os.pipe()
    for _ in range(links):
        if os.fork() == 0:
            if os.fork() == 0:
                while time.process_time() < 0.25: pass
                os.write(end, b"x")
            os._exit(0)
        os.wait()
        os.read(done, 1)
"""


@pytest.mark.parametrize("level", [*REUSED, "single"])
def test_processor_time_is_that_of_all_processes_of_a_call_and_of_no_other_call(
    box_of: Callable[..., DrivenBox], level: str
) -> None:
    box = box_of()
    box.load({"main": CHAIN}, level=level)

    said = box.call(links=3)

    assert said.ended == run_monitor.EXITED
    assert said.head["cpu_exact"]
    assert said.head["cpu_ms"] > 750
    if level in REUSED:
        assert box.call(links=0).head["cpu_ms"] < 250
        assert box.call(links=1).head["cpu_ms"] > 250


def test_where_the_boxs_group_cannot_be_read_the_first_process_is_held_to_the_limit_and_it_is_said(
    box_of: Callable[..., DrivenBox], tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    box = box_of(limits=replace(ROOMY, wall_ms=25_000, cpu_s=1), binds=[f"{nothing}:/sys/fs/cgroup:ro"])
    box.load({"main": "def run():\n    while True: pass"})

    said = box.call()

    assert (said.ended, said.head["exit"]) == (run_monitor.EXITED, {"signal": 9})
    assert said.head["out_of_processor_time"]
    assert not said.head["cpu_exact"]


TOUCHES_A_DEVICE = """
import os, time
def run():
    before = os.stat("/dev/zero").st_mtime_ns
    os.utime("/dev/zero")
    now = os.stat("/dev/zero").st_mtime_ns
    while time.clock_gettime_ns(5) <= now: pass  # CLOCK_REALTIME_COARSE, that of files
    return [before, now]
"""


@pytest.mark.parametrize("level", REUSED)
def test_the_times_of_devices_do_not_tell_of_the_call_before(box_of: Callable[..., DrivenBox], level: str) -> None:
    box = box_of()
    box.load({"main": TOUCHES_A_DEVICE}, level=level)

    _, left = box.call().value

    said = box.call()
    assert said.value[0] > left
    assert said.clean


def test_memory_is_limited_and_the_box_goes_on(box_of: Callable[..., DrivenBox]) -> None:
    box = box_of(limits=replace(ROOMY, memory_bytes=64 << 20))
    source = "def run(size):\n    held = []\n    while size: held.append(bytearray(1 << 20)); size -= 1\n    return len(held)"
    box.load({"main": source})

    killed = box.call(size=2000)

    assert killed.head["exit"] == {"signal": 9}
    assert killed.head["out_of_memory"]
    assert box.call(size=1).value == 1


SIGNALS = """
import os, signal
def run():
    got = []
    for pid in range(1, 200):
        if pid not in (os.getpid(), os.getpgid(0)):
            try: os.kill(pid, 0)
            except OSError: continue
            got.append(pid)
    return got
"""


@pytest.mark.parametrize("level", LEVELS)
def test_nobody_else_in_the_box_can_be_signalled(box_of: Callable[..., DrivenBox], level: str) -> None:
    assert once(box_of(), SIGNALS, level=level).value == []


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("import os, time\nif os.fork() == 0: time.sleep(60)", "left a process behind"),
        ("import os\nos._exit(0)", "ended before it was ready"),
        ("import os\nos.kill(os.getpid(), 9)", "ended before it was ready"),
    ],
)
def test_a_dependency_that_does_harm_while_it_is_imported_is_not_loaded(
    box_of: Callable[..., DrivenBox], tmp_path: Any, source: str, why: str
) -> None:
    store = tmp_path / "store"
    store.mkdir(mode=0o755)
    (store / "harmful.py").write_text(source)
    box = box_of(binds=[f"{store}:/deps:ro"])

    loaded = box.load({"main": "import harmful\ndef run(): return 1"})

    assert not loaded["ok"]
    assert why in loaded["why"]
    assert box.is_gone()


def test_dependencies_are_imported_before_the_call_and_never_shadow_what_they_must_not(
    box_of: Callable[..., DrivenBox], tmp_path: Any
) -> None:
    store = tmp_path / "store"
    (store / "useful").mkdir(parents=True)
    (store / "useful" / "__init__.py").write_text("import os, threading\nPID = os.getpid()")
    (store / "useful" / "deep.py").write_text("N = 7")
    (store / "json.py").write_text("raise SystemExit")
    (store / "tool.py").write_text("raise SystemExit")
    (store / "failing.py").write_text("raise RuntimeError")
    source = (
        "import os, json, useful\nfrom useful import deep\ntry: import failing\nexcept RuntimeError: pass\n"
        "def run(): return [useful.PID != os.getpid(), deep.N]"
    )
    box = box_of(binds=[f"{store}:/deps:ro"])

    loaded = box.load({"main": source}, level="shared")

    assert "useful" in loaded["preloaded"]
    assert "failing" not in loaded["preloaded"]
    assert box.call().value == [True, 7]
