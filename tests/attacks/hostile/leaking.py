"""Find what is not the tool's, or leave something for the next one."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path

from sandbox import protocol


def environment() -> list[str]:
    known = {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}
    got = [name for name in os.environ if name not in known]
    for path in ("/proc/self/environ", "/proc/1/environ"):
        try:
            if Path(path).read_bytes().strip(b"\0"):
                got.append(path)
        except OSError:
            continue
    return got


def memory_of_the_supervisor() -> list[str]:
    got = []
    for name in ("mem", "maps", "environ", "fd", "cwd", "root", "stack", "syscall", "auxv", "exe", "map_files"):
        path = f"/proc/1/{name}"
        try:
            os.listdir(path) if name in {"fd", "cwd", "root", "map_files"} else Path(path).read_bytes()
        except OSError:
            continue
        got.append(path)
    return got


def keys_in_memory() -> list[str]:
    """The frame that brought the keys: its header is known. The pattern is put together late, so it does not find itself."""
    kind = struct.pack("!BBII", protocol.VERSION, protocol.HELLO, 0, 64)
    found = 0
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in list(maps):
            place, rights = line.split()[:2]
            begin, end = (int(part, 16) for part in place.split("-"))
            if "r" not in rights or end - begin > 64 * 1024 * 1024:
                continue
            try:
                memory.seek(begin)
                block = memory.read(end - begin)
            except (OSError, ValueError, OverflowError):
                continue
            at = block.find(b"TB")
            while at >= 0:
                found += block[at + 2 : at + 12] == kind
                at = block.find(b"TB", at + 1)
    return [f"{found} frames with keys"] if found else []


def the_runner_rewritten() -> list[str]:
    got = []
    for path in (
        __file__,
        "/opt/toolhub/sandbox/call.py",
        "/opt/toolhub/unitools/runtime.py",
        sys.executable,
        os.__file__,
    ):
        for act in (
            lambda p: os.chmod(p, 0o777),
            lambda p: open(p, "ab").close(),
            os.unlink,
            lambda p: os.rename(p, "/w/x"),
        ):
            try:
                before = os.stat(path).st_mode
                act(path)
            except OSError:
                continue
            if path != __file__ and (not os.path.exists(path) or os.stat(path).st_mode != before):
                got.append(path)
            if act is os.unlink:
                got.append(f"removed {path}")
    return got


def the_package_rewritten() -> list[str]:
    got = []
    folder = Path(__file__).parent
    for act in (
        lambda: (folder / "content.py").write_text("x"),
        lambda: (folder / "new.py").write_text("x"),
        lambda: (folder / "content.py").unlink(),
        lambda: folder.rename("/p/other"),
    ):
        try:
            folder.chmod(0o777)
            (folder / "content.py").chmod(0o777)
        except OSError:
            pass
        try:
            act()
        except OSError:
            continue
        got.append("changed")
    return got


def things_left_behind() -> list[str]:
    for path in ("/w/left", "/dev/shm/left", "/dev/mqueue/left", "/tmp/left", "/var/tmp/left", "/run/left"):
        try:
            Path(path).write_text("left")
        except OSError:
            continue
        if path != "/w/left":
            return [path]
    return []


def things_of_the_call_before() -> list[str]:
    return [str(path) for folder in ("/w", "/dev/shm", "/dev/mqueue", "/tmp") for path in _list(folder)]


def _list(folder: str) -> list[Path]:
    try:
        return list(Path(folder).iterdir())
    except OSError:
        return []


def a_process_in_the_background() -> list[str]:
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(60)
        os._exit(0)
    return []


def places_of_others() -> list[str]:
    """What it can see of the tree above its own folders: nothing, so that not even names tell of others."""
    got = []
    for folder in (
        "/",
        "/c",
        "/etc",
        "/home",
        "/root",
        "/var",
        "/run",
        "/tmp",
        "/mnt",
        "/proc",
        "/sys",
        "/dev",
        "/boot",
    ):
        try:
            got += [f"{folder} has {len(os.listdir(folder))}"]
        except OSError:
            continue
    return got


def what_the_box_was_told() -> list[str]:
    """Anything in the interpreter's objects that is not this call's: frames, locals, what the collector knows."""
    import gc

    got = []
    frame = sys._getframe()
    while frame is not None:
        for name in frame.f_locals:
            if name in {"key", "keys", "channel", "token"}:
                got.append(f"{frame.f_code.co_name}.{name}")
        frame = frame.f_back  # type: ignore[assignment]
    return got + [type(each).__name__ for each in gc.get_objects() if type(each).__name__ in {"Channel", "Supervisor"}]


def programs() -> list[str]:
    got = []
    for command in (["/bin/sh", "-c", "id"], ["/usr/bin/env"], [sys.executable, "-c", "1"], ["id"]):
        try:
            subprocess.run(command, check=False, timeout=5)
        except (OSError, subprocess.SubprocessError):
            continue
        got.append(command[0])
    if os.system("true") == 0:
        got.append("system")
    return got
