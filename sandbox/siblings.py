"""Siblings: how a process is made whose parent is the parent of its maker.

The kernel can do that (``CLONE_PARENT``), but the C library's ``fork`` cannot be told to. So its system call is made here, with
what the C library and Python do before and after it in a process of one thread. Not done is what code in C may have asked to be
called around a fork (``pthread_atfork``): where there is such code, or another thread, there is no such process.
"""

from __future__ import annotations

import ctypes
import os
import signal
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

# CLONE_PARENT; beside it what fork asks for: CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID.
FLAGS = 0x00008000 | 0x01000000 | 0x00200000 | signal.SIGCHLD
_PR_GET_TID_ADDRESS = 40
# The numbers of clone, set_robust_list and get_robust_list, and which argument of clone says where the thread's number goes.
_MACHINES = {"x86_64": (56, 273, 274, 3), "aarch64": (220, 99, 100, 4)}
_OURS = ("/usr/", "/lib")  # of the image, where nobody asks for that
_ASKS = b"_atfork"  # a library names the functions that it calls
_PIECE_BYTES = 1 << 18


class Siblings:
    """Makes processes beside its own, each in new ``namespaces``."""

    def __init__(self, namespaces: int) -> None:
        # Looked up now, not again in each child. PyDLL keeps the interpreter's lock: in a child nobody could give it back.
        libc = ctypes.PyDLL(None, use_errno=True)
        self._before, self._in_child = ctypes.pythonapi.PyOS_BeforeFork, ctypes.pythonapi.PyOS_AfterFork_Child
        self._in_parent = ctypes.pythonapi.PyOS_AfterFork_Parent
        self._call = libc.syscall
        self._call.restype, self._call.argtypes = ctypes.c_long, (ctypes.c_long,) * 6
        self._clone, self._set_robust_list, get_robust_list, place = _MACHINES[os.uname().machine]
        address, size = ctypes.c_void_p(), ctypes.c_size_t()
        if libc.prctl(_PR_GET_TID_ADDRESS, ctypes.byref(address), 0, 0, 0):
            raise OSError("The kernel does not say where the C library keeps the number of a thread.")
        self._arguments = [FLAGS | namespaces, 0, 0, 0, 0]
        self._arguments[place] = address.value or 0
        self._call(get_robust_list, 0, ctypes.addressof(address), ctypes.addressof(size), 0, 0)
        self._robust_list = address.value or 0, size.value  # of mutexes: a child begins without one

    @classmethod
    def of_this_process(cls, namespaces: int = 0) -> Siblings | None:
        """None where it cannot have any, and must fork."""
        with suppress(OSError, KeyError):
            if len(os.listdir("/proc/self/task")) == 1 and not _has_code_that_asks():
                return cls(namespaces)
        return None

    def make(self, serve: Callable[[], NoReturn]) -> bool:
        """As ``os.fork`` does, and in the new process nothing but ``serve``. False where the kernel will not."""
        self._before()
        pid: int = self._call(self._clone, *self._arguments)
        if pid == 0:
            try:
                self._in_child()
                self._call(self._set_robust_list, *self._robust_list, 0, 0, 0)
                serve()
            finally:
                os._exit(0)
        self._in_parent()
        return pid > 0


def _has_code_that_asks() -> bool:
    with open("/proc/self/maps") as maps:
        paths = {line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "/" in line}
    return any(_asks(path) for path in paths if not path.startswith(_OURS))


def _asks(path: str) -> bool:
    """Read in pieces: a library may be larger than the memory of a box."""
    with open(path, "rb") as file:
        before = b""
        while piece := file.read(_PIECE_BYTES):
            if _ASKS in before + piece:
                return True
            before = piece[-len(_ASKS) :]
    return False
