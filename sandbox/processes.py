"""Processes: who is alive in the box, and how the tool's process ended.

Asked by the first process of the box. It is the parent of the zygote and of each tool's process, which the zygote makes as its
own sibling: so the kernel tells it how that ended and what it took, not the zygote, which may have run a tool's
dependencies. How many are alive is one number of the box's own cgroup, which cannot be dodged by changing process
numbers as a walk through /proc can.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

_REAP_S = 2.0
_SETTLE_S = 0.01  # the kernel takes a moment to forget the dead
_COUNTS = ("/sys/fs/cgroup/pids.current", "/sys/fs/cgroup/pids/pids.current")
_MEMORY_EVENTS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def _open_first(paths: tuple[str, ...]) -> int:
    for path in paths:
        with suppress(OSError):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return -1


class BoxProcesses:
    """Everybody in the box but the one who asks."""

    def __init__(self) -> None:
        self._count = _open_first(_COUNTS)
        self._memory_events = _open_first(_MEMORY_EVENTS)
        self._at_rest = 0
        self.zygote = self.relay = self.tool = 0
        self.zygote_gone = False
        self._end: tuple[int, float, int] | None = None

    def how_many(self) -> int:
        """Tasks of the box, threads and the not yet buried dead among them."""
        if self._count >= 0:
            return int(os.pread(self._count, 32, 0))
        tasks = 0
        for name in os.listdir("/proc"):
            if name.isdecimal():
                with suppress(OSError):
                    tasks += len(os.listdir(f"/proc/{name}/task"))
        return tasks

    def come_to_rest(self) -> bool:
        """Remember how many there are without a tool. False when there are more than the supervisor and its helpers."""
        helpers = [pid for pid in (self.zygote, self.relay) if pid]
        try:
            self._at_rest = 1 + sum(len(os.listdir(f"/proc/{pid}/task")) for pid in helpers)
        except OSError:
            return False
        return self.at_rest(patience=_REAP_S)

    def at_rest(self, patience: float = _SETTLE_S) -> bool:
        """True when nobody is alive who was not when the box came to rest."""
        self.reap()
        deadline = time.monotonic() + patience
        while self.how_many() != self._at_rest:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.0005)
            self.reap()
        return not self.zygote_gone

    def expect(self, tool: int) -> None:
        """This is the tool's process from now on. To be said before anybody is buried who may be it."""
        self.tool, self._end = tool, None

    def reap(self) -> bool:
        """Bury the dead. False when nobody is left, dead or alive."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.zygote:
                self.zygote_gone = True
            if pid == self.tool:
                self._end = status, (usage.ru_utime + usage.ru_stime) * 1000, usage.ru_maxrss * 1024

    @property
    def tool_has_ended(self) -> bool:
        return self._end is not None

    def end_of_tool(self) -> tuple[dict[str, int], float, int]:
        """How its process ended, its processor time in milliseconds, and the most memory that it held in bytes."""
        if self._end is None:
            return {}, 0.0, 0
        status, cpu_ms, max_rss_bytes = self._end
        if os.WIFSIGNALED(status):
            return {"signal": os.WTERMSIG(status)}, cpu_ms, max_rss_bytes
        return {"code": os.WEXITSTATUS(status)}, cpu_ms, max_rss_bytes

    def kill_all(self) -> bool:
        """End every process of the box but this one, at once. False when some would not end."""
        deadline = time.monotonic() + _REAP_S
        while self.reap():
            if time.monotonic() > deadline:
                return False
            os.kill(-1, signal.SIGKILL)  # atomic against a tool that forks: the kernel walks the whole namespace
            time.sleep(0.001)
        return True

    def out_of_memory_kills(self) -> int:
        """How often the kernel has killed in this box for lack of memory."""
        if self._memory_events < 0:
            return 0
        events = os.pread(self._memory_events, 4096, 0).decode("ascii", "replace")
        return sum(int(line.split()[1]) for line in events.splitlines() if line.startswith("oom_kill "))
