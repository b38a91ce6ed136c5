"""Namespaces: how a call gets a world of its own.

For the level ``fresh``: a user, a process, a mount and an IPC namespace, made for one call and gone with it, so the kernel
removes what a call leaves behind and not a check of ours. Making them gives the process all capabilities inside; they
are dropped for good before anything of a tool is loaded.

The tool's process is the first one of its process namespace. That costs no process more, and ends whatever it has started
when it ends itself; but the kernel spares such a process all signals from inside that it has no handler for, but for those
that are its own faults.
"""

from __future__ import annotations

import ctypes
import os
import struct

from sandbox.access_attempts import PACKAGE, WORK
from sandbox.files import DATA

NAMESPACES = 0x10000000 | 0x20000000 | 0x00020000 | 0x08000000  # CLONE_NEWUSER, NEWPID, NEWNS, NEWIPC

_NOTHING_RUNS = 0x2 | 0x4 | 0x8  # MS_NOSUID, NODEV, NOEXEC
_FOLDER = _NOTHING_RUNS
_READ_ONLY = 0x20 | 0x1000 | 0x1 | _NOTHING_RUNS  # MS_REMOUNT, BIND, RDONLY
MOUNT_FLAGS = (_FOLDER, _READ_ONLY)  # all that the container's seccomp profile lets through

REPLACED = (WORK, PACKAGE, DATA)  # by mounts of the call's own

_FILES = 4096
_PAGE = 4096
_PR_CAPBSET_DROP = 24
_CAPABILITIES = 64  # more than there are
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _failed(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def unshare_namespaces() -> None:
    """The next child of this process begins a world of its own."""
    if _libc.unshare(NAMESPACES):
        raise _failed("unshare")


def map_user(uid: int, gid: int) -> None:
    """In the new world this process's user is who it was outside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(fd, text.encode())
        os.close(fd)


def mount_folders(scratch: int, data: int) -> None:
    """Give the new world its empty folders, each of at most so many bytes, and a package that nothing can change."""
    # A size of 0 would mean "no limit": without scratch space there is one page, which may not be written to.
    _mount_folder(WORK, max(scratch, _PAGE), "0700" if scratch else "0500")
    if data:
        _mount_folder(DATA, data, "0700")
    _mount(None, PACKAGE, None, _READ_ONLY, None)


def _mount_folder(place: str, size: int, mode: str) -> None:
    _mount(b"tmpfs", place, b"tmpfs", _FOLDER, f"size={size},nr_inodes={_FILES},mode={mode}".encode())


def _mount(source: bytes | None, target: str, kind: bytes | None, flags: int, options: bytes | None) -> None:
    if _libc.mount(source, os.fsencode(target), kind, ctypes.c_ulong(flags), options):
        raise _failed(f"mount on {target}")


def drop_capabilities() -> None:
    """Also those that a program could get later."""
    for capability in range(_CAPABILITIES):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0):
            break
    header, nothing = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    if _libc.capset(header, nothing):
        raise _failed("capset")
