"""Tricks: what several attacks are made of."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

OTHERS = range(2, 200)


def background(work: Callable[[], object]) -> None:
    """Run it in a process of no session that anybody knows, deaf to every signal that can be ignored."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 65):
                with suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_IGN)
            with suppress(BaseException):
                work()
        os._exit(0)


def each_other(act: Callable[[int], object]) -> None:
    for pid in OTHERS:
        if pid != os.getpid():
            with suppress(OSError, ValueError):
                act(pid)
