"""Meter: how much processor time a call takes, in any of its processes, and how long it waits for a processor.

The kernel's own limit is one process's and begins anew in each child, and a parent is told of those children only that it
has waited for. So the count of the box's own cgroup is read, before a call is handed over and after nobody of it is alive:
what is in between is the call's. With it are counted the few steps of those who serve it meanwhile: the relay, which carries
what the tool sends, and threads that an imported module has left in the zygote. Not with it are this process's own work,
which is taken off, and the making of the next call's process, which comes after the second reading.

How long a process was ready to run, and others ran, the kernel counts for each thread. A tool cannot bring that about by
waiting for something, and by threads of its own only while they take processor time, which is counted.
"""

from __future__ import annotations

import os
import time

_GROUP = "/sys/fs/cgroup"
# The file; one that must be beside it, for the group of a whole machine has no type; which word it is; how many are a ms.
_PLACES = (
    (f"{_GROUP}/cpu.stat", f"{_GROUP}/cgroup.type", 1, 1e3),
    (f"{_GROUP}/cpuacct/cpuacct.usage", _GROUP, 0, 1e6),
    (f"{_GROUP}/cpu,cpuacct/cpuacct.usage", _GROUP, 0, 1e6),
)
_ENOUGH_BYTES = 64


class ProcessorMeter:
    """What this box has used of the processors since :meth:`begin`. Without ``exact`` nothing is known of it."""

    def __init__(self) -> None:
        self.exact = False
        self._begun_ms = 0.0
        self._tool = 0
        self._imported_ms: float | None = None  # of a call, before its own time began
        for path, beside, self._word, self._per_ms in _PLACES:
            if os.access(path, os.R_OK) and os.path.exists(beside):
                self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                self.exact = True
                break

    def begin(self, tool: int) -> None:
        """``tool``: the number of the process that does the call."""
        self._imported_ms = None
        self._tool = tool
        if self.exact:
            self._begun_ms = self._now_ms()

    def begin_run(self) -> None:
        """What was taken until now is not the tool's own."""
        self._imported_ms = self.taken_ms()

    def is_spent(self, import_ms: float, run_ms: float) -> bool:
        """Whether a call has taken more than it may, for importing and then for itself."""
        taken_ms = self.taken_ms()
        return taken_ms > import_ms if self._imported_ms is None else taken_ms - self._imported_ms > run_ms

    def taken_ms(self) -> float:
        """Without this process's own part."""
        return max(0.0, self._now_ms() - self._begun_ms) if self.exact else 0.0

    def waited_s(self) -> float:
        """How long the tool's process was ready to run, and had no processor; while its walls were raised, too, since to look then as
        well would cost each call more than that time is ever worth.

        Nothing without ``exact``: one that keeps itself waiting would not be found out by what it takes.
        """
        return _waited_s(self._tool) if self.exact else 0.0

    def _now_ms(self) -> float:
        own_ms = time.process_time_ns() / 1e6  # first: asking has the kernel bring this process's account up to date
        words = os.pread(self._fd, _ENOUGH_BYTES, 0).split()
        return int(words[self._word]) / self._per_ms - own_ms


def _waited_s(pid: int) -> float:
    """By the kernel's account of the first thread, which imports; 0 where it keeps none."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as account:
            return int(account.read(_ENOUGH_BYTES).split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
