"""Confinement: what a process in the box may still do to the rest of it.

Each function puts up one wall around the calling process, and none can be taken down again. The container is the
first wall; these stand inside it, around the process that runs a tool.
"""

from __future__ import annotations

import ctypes
import fcntl
import math
import os
import resource
import stat
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture

# Landlock access rights (linux/landlock.h), by the first version of the interface that knows them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE, _MAKE_DIR, _MAKE_FILE, _REFER = 1 << 4, 1 << 5, 1 << 7, 1 << 8, 1 << 13
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_RIGHTS_OF_ACTION = {
    "read": _READ_FILE,
    "list": _READ_DIR,
    "write": _WRITE_FILE | _TRUNCATE,
    "create": _MAKE_FILE | _MAKE_DIR | _WRITE_FILE | _TRUNCATE,  # what was made has to be filled
    "delete": _REMOVE_FILE | _REMOVE_DIR,
}
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_MAKE_DEVICES = 1 << 6 | 1 << 11
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_NET_SINCE, _NET_RIGHTS, _CONNECT = 4, 0b11, 0b10  # bind and connect TCP
_PATH_BENEATH, _NET_PORT = 1, 2  # kinds of rules
OUT_OF_THE_WAY = 64  # of the descriptors that have fixed places
_SCOPES_SINCE, _SCOPES = 6, 0b11  # abstract unix sockets and signals, to processes outside


def _failed(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def set_dumpable(dumpable: bool) -> None:
    """Others of the same user can neither trace a process that is not dumpable, nor open its /proc entries."""
    if _libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0):
        raise _failed("prctl(PR_SET_DUMPABLE)")


def scrub_environment() -> None:
    """Empty the environment, and also the memory it was passed in, which /proc/self/environ would still show."""
    block = ctypes.POINTER(ctypes.c_void_p).in_dll(_libc, "environ")
    index = 0
    while block and block[index]:
        address = block[index]
        ctypes.memset(address, 0, len(ctypes.string_at(address)))
        index += 1
    os.environ.clear()


def resource_limits(
    limits: dict[str, int], *, descriptors: int = 128, others: int = 0, first: bool = False
) -> list[tuple[int, tuple[int, int]]]:
    """Limits of the kernel for one process, for :func:`limit_resources`. The container's limits hold for all of them together.

    ``others`` processes of the same user are not the tool's. ``first``: it is the first of its process namespace, which is
    not warned at the soft limit of processor time.
    """
    cpu, file, processes = limits["cpu_s"], limits["tmp_bytes"], limits["processes"] + others
    found = []
    for name, soft, hard in (
        (resource.RLIMIT_CPU, cpu, cpu if first else cpu + 1),
        (resource.RLIMIT_FSIZE, file, file),
        (resource.RLIMIT_NOFILE, descriptors, descriptors),
        (resource.RLIMIT_NPROC, processes, processes),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
    ):
        _, ceiling = resource.getrlimit(name)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        found.append((name, (soft, hard)))
    return found


def limit_resources(limits: list[tuple[int, tuple[int, int]]]) -> None:
    for name, pair in limits:
        resource.setrlimit(name, pair)


def limit_processor(seconds: int, *, first: bool) -> None:
    """How much of a processor this process may take from now on; see :func:`resource_limits`."""
    soft = math.ceil(time.process_time()) + seconds
    _, ceiling = resource.getrlimit(resource.RLIMIT_CPU)
    hard = soft if first else soft + 1
    if ceiling != resource.RLIM_INFINITY:
        soft, hard = min(soft, ceiling), min(hard, ceiling)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 where there is none."""
    version: int = _libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    return max(0, version)


class LandlockRuleset:
    """What is left of the file system, and of the network: everything is closed that is not opened here.

    What is opened before :meth:`begin` is found once, for all children of this process: each of them begins, may open more
    for itself alone, and confines itself.
    """

    def __init__(self) -> None:
        version = landlock_version()
        self._rights = _ALL_RIGHTS[max(known for known in _ALL_RIGHTS if known <= version)]
        self._has_net = version >= _NET_SINCE
        fields = [self._rights]
        if self._has_net:
            fields.append(_NET_RIGHTS)
        if version >= _SCOPES_SINCE:
            fields.append(_SCOPES)
        self._attributes = struct.pack(f"={len(fields)}Q", *fields)
        self._rules: list[tuple[int, bytes]] = []
        self._ruleset = -1

    def begin(self) -> None:
        self._ruleset = _libc.syscall(_LANDLOCK_CREATE, self._attributes, len(self._attributes), 0)
        if self._ruleset < 0:
            raise _failed("landlock_create_ruleset")
        for kind, rule in self._rules:
            self._add(kind, rule)

    def rehearse(self) -> None:
        """All but what confines."""
        self.begin()
        os.close(self._ruleset)
        self._ruleset = -1

    def allow_reading(self, *paths: str) -> None:
        self._allow(_READ_FILE | _READ_DIR, *paths)

    def allow_writing(self, *paths: str) -> None:
        """Everything but running programs and making devices."""
        self._allow(self._rights & ~_EXECUTE & ~_MAKE_DEVICES, *paths)

    def allow_running(self, *paths: str) -> None:
        self._allow(_EXECUTE | _READ_FILE, *paths)

    def allow_actions(self, path: str, actions: Iterable[str]) -> None:
        """By the words of a capability; ``exec`` is none of them: what is brought or made is never run."""
        rights = 0
        for action in actions:
            rights |= _RIGHTS_OF_ACTION.get(action, 0)
        if rights & _MAKE_FILE and rights & _REMOVE_FILE:
            rights |= _REFER  # to move from folder to folder is to make and to remove
        self._allow(rights, path)

    def allow_connecting(self, port: int) -> None:
        if self._has_net:
            self._rules.append((_NET_PORT, struct.pack("=QQ", _CONNECT, port)))

    def _allow(self, rights: int, *paths: str) -> None:
        for path in paths:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # images differ; what is not there needs no door
            is_folder = stat.S_ISDIR(os.fstat(place).st_mode)
            wanted = rights & self._rights & (-1 if is_folder else _FILE_RIGHTS)
            if wanted and self._ruleset >= 0:
                self._add(_PATH_BENEATH, struct.pack("=Qi", wanted, place))
            elif wanted:
                kept = fcntl.fcntl(place, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY)
                self._rules.append((_PATH_BENEATH, struct.pack("=Qi", wanted, kept)))
            os.close(place)

    def _add(self, kind: int, rule: bytes) -> None:
        if _libc.syscall(_LANDLOCK_ADD_RULE, self._ruleset, kind, rule, 0):
            raise _failed(f"landlock_add_rule({kind})")

    def confine(self) -> None:
        """This process, from now on."""
        if _libc.syscall(_LANDLOCK_RESTRICT, self._ruleset, 0):
            raise _failed("landlock_restrict_self")
        os.close(self._ruleset)


def forbid_new_privileges() -> None:
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise _failed("prctl(PR_SET_NO_NEW_PRIVS)")


class _Program(ctypes.Structure):
    """``struct sock_fprog``"""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def filter_system_calls(program: bytes) -> None:
    """Install a seccomp filter from :mod:`sandbox.syscalls`."""
    memory = ctypes.create_string_buffer(program, len(program))
    fprog = _Program(len(program) // 8, ctypes.cast(memory, ctypes.c_void_p))
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(fprog), 0, 0):
        raise _failed("prctl(PR_SET_SECCOMP)")
