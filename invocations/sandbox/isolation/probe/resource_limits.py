"""Resource limits: how much the processes of this box can take."""

from __future__ import annotations

import errno
import mmap
import os
import resource
import signal
import time

from .child_process import end_children, fork_child

Found = tuple["bool | None", str]

_MIB = 1024 * 1024
_MORE = 32  # than is allowed, so many are tried
_SPIN_S = 0.4
_HALF_MORE = 1.5  # a share of a processor that a quota of one does not give, also when the time begins with a full one


def check_processes(most: int) -> Found:
    children: list[int] = []
    try:
        while len(children) < most + _MORE:
            children.append(fork_child(signal.pause))
    except OSError as error:
        return len(children) < most and error.errno == errno.EAGAIN, f"no further one after {len(children) + 1}"
    finally:
        end_children(children)
    return False, f"{len(children) + 1} at once, {most} are allowed"


def check_memory(most: int) -> Found:
    """A child takes more than there may be, which may not become room on a disk either."""
    taken = mmap.mmap(-1, 8)

    def take() -> None:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
        blocks = []
        for number in range(most // _MIB + _MORE):
            block = mmap.mmap(-1, _MIB)
            for page in range(0, _MIB, 4096):
                block[page] = 1
            blocks.append(block)
            taken[:8] = (number + 1).to_bytes(8, "little")

    _, how = os.waitpid(fork_child(take), 0)
    got = f"{int.from_bytes(taken[:8], 'little')} MiB of {most // _MIB}"
    if os.WIFSIGNALED(how) and os.WTERMSIG(how) == signal.SIGKILL:
        return True, f"ended after {got}"
    return bool(how), f"{'refused' if how else 'not ended'} after {got}"


def check_processors(quota: float) -> Found:
    """What the control group says, and whether two processes get more than that."""
    said = _quota()
    if said is not None and said > quota:
        return False, f"a quota of {'none' if said == float('inf') else said}, {quota:g} is allowed"
    held_back, share = _held_back(), _share_of_two()
    if share > quota * _HALF_MORE:
        return False, f"two processes got {share:.1f} processors, {quota:g} is allowed"
    times = _held_back() - held_back
    if times > 0:
        return True, f"two processes got {share:.1f} processors and were held back {times} times"
    if said is None:
        return None, f"two processes got {share:.1f} processors; the machine may be busy, and no quota is to be seen"
    return True, f"a quota of {said:g}; two processes got {share:.1f}"


def _read(*paths: str) -> list[str] | None:
    for path in paths:
        try:
            with open(path) as file:
                return file.read().split()
        except OSError:
            continue
    return None


def _quota() -> float | None:
    if pair := _read("/sys/fs/cgroup/cpu.max"):
        return float("inf") if pair[0] == "max" else int(pair[0]) / int(pair[1])
    quota, period = (_read(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us") for name in ("quota", "period"))
    if not quota or not period:
        return None
    return float("inf") if int(quota[0]) < 0 else int(quota[0]) / int(period[0])


def _held_back() -> int:
    words = _read("/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat") or []
    return int(words[words.index("nr_throttled") + 1]) if "nr_throttled" in words else 0


def _share_of_two() -> float:
    def spin() -> None:
        until = time.monotonic() + _SPIN_S
        while time.monotonic() < until:
            pass

    begun = time.monotonic()
    children = [fork_child(spin) for _ in range(2)]
    used = 0.0
    for pid in children:
        usage = os.wait4(pid, 0)[2]
        used += usage.ru_utime + usage.ru_stime
    return used / (time.monotonic() - begun)


def counts_processes() -> bool:
    """Does the control group count this box's processes, so that one left behind is seen?"""
    paths = ("/sys/fs/cgroup/pids.current", "/sys/fs/cgroup/pids/pids.current")
    before = _read(*paths)
    child = fork_child(signal.pause)
    during = _read(*paths)
    end_children([child])
    return before is not None and during is not None and int(during[0]) == int(before[0]) + 1


def check_open_files(most: int) -> Found:
    got: list[int] = []
    try:
        while len(got) <= most:
            got.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        return error.errno == errno.EMFILE, f"no further one after {len(got)}"
    finally:
        for fd in got:
            os.close(fd)
    return False, f"{len(got)} opened, {most} are allowed"


def check_core_dump(place: str) -> Found:
    """Nothing of a crashed tool's memory goes to a file, or to a program of the host that collects such."""

    def crash() -> None:
        os.chdir(place)
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        os.abort()

    _, how = os.waitpid(fork_child(crash), 0)
    if os.WCOREDUMP(how):
        return False, "the memory of a crashed process was dumped, by what the host's kernel.core_pattern says"
    return True, "a crashed process left none"


def check_storage(place: str, size: int, files: int) -> Found:
    """Of a place that may be written to: is it as large as it may be, and can nothing be run from it?"""
    wrong = []
    path = f"{place}/.probe"
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        os.posix_fallocate(fd, 0, size // 2)
        if not _refused(lambda: os.posix_fallocate(fd, 0, size + 4096), errno.ENOSPC, errno.EFBIG):
            wrong.append(f"more than {size} bytes")
        if not _refused(lambda: mmap.mmap(fd, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC), errno.EPERM, errno.EACCES):
            wrong.append("code can be run from it")
    finally:
        os.close(fd)
        os.unlink(path)
    made = _make_files(place, files)
    if made > files:
        wrong.append(f"more than {files} files")
    return not wrong, ", ".join(wrong) or f"{size // 1024} KiB and {made} files, no code is run from it"


def _refused(act: object, *numbers: int) -> bool:
    try:
        act()  # type: ignore[operator]
    except OSError as error:
        return error.errno in numbers
    return False


def _make_files(place: str, most: int) -> int:
    made = 0
    try:
        while made <= most:
            os.close(os.open(f"{place}/.probe-{made}", os.O_CREAT | os.O_WRONLY, 0o600))
            made += 1
    except OSError:
        pass
    for number in range(made):
        os.unlink(f"{place}/.probe-{number}")
    return made
