"""Huge pages: how the memory of a process that lives long is mapped.

A process of the hub holds some two hundred megabytes in pages of four kilobytes, and each call goes through much of it. The processor
remembers where a few thousand pages are and looks up all others, which in a virtual machine means to look up each step of the way too.
In pages of two megabytes all of it is remembered. Linux makes them of what is there when it is told to (``MADV_COLLAPSE``, since 6.1).
Elsewhere, where it will not, and where the host's operator has switched huge pages off, nothing happens: nothing depends on it.

Only stretches that are full to seven eighths are joined: a process grows by hardly anything, and stacks of threads stay as they are.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import threading
import time
from array import array
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("toolhub.memory")
AFTER_S = (5.0, 60.0)  # what the first calls need is made by then; what a busy process keeps besides
HUGE_BYTES = 2 << 20
PAGE_BYTES = 4096
SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")  # of the host; a collapse does not ask for it by itself
_FULL = HUGE_BYTES // PAGE_BYTES * 7 // 8
_MADV_COLLAPSE = 25
_PRESENT = 1 << 63
_ENTRY_BYTES = 8  # of /proc/self/pagemap


def start_collapses() -> None:
    """Without anybody waiting for it."""
    if sys.platform == "linux" and os.sysconf("SC_PAGE_SIZE") == PAGE_BYTES:
        threading.Thread(target=collapse_twice, name="huge-pages", daemon=True).start()


def collapse_twice() -> None:
    for seconds in AFTER_S:
        time.sleep(seconds)
        try:
            joined = collapse_memory()
        except OSError as error:
            log.debug("Memory stays in small pages: %s", error)
            return
        log.debug("%s MB of memory are in huge pages", joined * HUGE_BYTES >> 20)


def collapse_memory() -> int:
    """How many huge pages this process's own memory is in now, of those that were looked at."""
    if is_switched_off():
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    joined = 0
    with Path("/proc/self/pagemap").open("rb", buffering=0) as pages:
        for start in _stretches():
            pages.seek(start // PAGE_BYTES * _ENTRY_BYTES)
            entries = array("Q", pages.read(HUGE_BYTES // PAGE_BYTES * _ENTRY_BYTES))
            if sum(entry & _PRESENT != 0 for entry in entries) < _FULL:
                continue
            # The interpreter's lock is not held meanwhile.
            if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(HUGE_BYTES), _MADV_COLLAPSE) == 0:
                joined += 1
    return joined


def is_switched_off() -> bool:
    """For all processes of the host, or because its kernel has no huge pages."""
    return not SETTING.exists() or "[never]" in SETTING.read_text()


def _stretches() -> Iterator[int]:
    """Where in the memory that is of no file a huge page could begin."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, rights, _, _, _, *path = line.split(maxsplit=5)
        if rights != "rw-p" or (path and path[0].strip() != "[heap]"):
            continue
        start, end = (int(each, 16) for each in span.split("-"))
        first = -(-start // HUGE_BYTES) * HUGE_BYTES
        yield from range(first, end - HUGE_BYTES + 1, HUGE_BYTES)
