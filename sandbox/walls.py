"""What may a process in the box still do to the rest of it?

Each function puts up one wall around the calling process, and none can be taken down again. The container is the
first wall; these stand inside it, around the process that runs a tool.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct

_libc = ctypes.CDLL(None, use_errno=True)

_PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 4, 22, 38
_SECCOMP_MODE_FILTER = 2
_OTHERS = 2  # of the same user in the box: supervisor, zygote
_LANDLOCK_CREATE, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT = 444, 445, 446  # the same on every architecture

# Landlock access rights (linux/landlock.h), by the first version of the interface that knows them.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_ALL_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
_MAKE_DEVICES = 1 << 6 | 1 << 11
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_NET_SINCE, _NET_RIGHTS = 4, 0b11  # bind and connect TCP
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


def limit_resources(limits: dict[str, int]) -> None:
    """Limits of the kernel for one process. The container's limits hold for all of them together."""
    cpu = limits["cpu_s"]
    for name, soft, hard in (
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_FSIZE, limits["tmp_bytes"], limits["tmp_bytes"]),
        (resource.RLIMIT_NOFILE, 128, 128),
        (resource.RLIMIT_NPROC, limits["processes"] + _OTHERS, limits["processes"] + _OTHERS),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
    ):
        _, ceiling = resource.getrlimit(name)
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        resource.setrlimit(name, (soft, hard))


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 where there is none."""
    version: int = _libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    return max(0, version)


def confine(*, readable: tuple[str, ...], writable: tuple[str, ...], net: bool) -> None:
    """Close the file system except for these paths, TCP unless ``net``, and signals to processes outside."""
    version = landlock_version()
    rights = _ALL_RIGHTS[max(known for known in _ALL_RIGHTS if known <= version)]
    fields = [rights]
    if version >= _NET_SINCE:
        fields.append(0 if net else _NET_RIGHTS)
    if version >= _SCOPES_SINCE:
        fields.append(_SCOPES)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _libc.syscall(_LANDLOCK_CREATE, attributes, len(attributes), 0)
    if ruleset < 0:
        raise _failed("landlock_create_ruleset")
    for paths, wanted in ((readable, _READ_FILE | _READ_DIR), (writable, rights & ~_EXECUTE & ~_MAKE_DEVICES)):
        for path in paths:
            _allow_path(ruleset, path, wanted & rights)
    if _libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0):
        raise _failed("landlock_restrict_self")
    os.close(ruleset)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # images differ; what is not there needs no door
    if not os.path.isdir(path):
        rights &= _FILE_RIGHTS
    rule = struct.pack("=Qi", rights, place)
    if _libc.syscall(_LANDLOCK_ADD_RULE, ruleset, 1, rule, 0):
        raise _failed(f"landlock_add_rule({path})")
    os.close(place)


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
