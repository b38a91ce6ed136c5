"""How does a call get a world of its own?

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

from sandbox.hints import PACKAGE

NAMESPACES = 0x10000000 | 0x20000000 | 0x00020000 | 0x08000000  # CLONE_NEWUSER, NEWPID, NEWNS, NEWIPC

_NOTHING_RUNS = 0x2 | 0x4 | 0x8  # MS_NOSUID, NODEV, NOEXEC
_FOLDER = _NOTHING_RUNS
_READ_ONLY = 0x20 | 0x1000 | 0x1 | _NOTHING_RUNS  # MS_REMOUNT, BIND, RDONLY
MOUNT_FLAGS = (_FOLDER, _READ_ONLY)  # all that the container's seccomp profile lets through

_FILES = 4096
_PAGE = 4096
_PR_CAPBSET_DROP = 24
_CAPABILITIES = 64  # more than there are
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def _failed(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


def unshare() -> None:
    """The next child of this process begins a world of its own, in which its user is who it was outside."""
    uid, gid = os.getuid(), os.getgid()
    if _libc.unshare(NAMESPACES):
        raise _failed("unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        os.write(fd, text.encode())
        os.close(fd)


def furnish(folders: dict[str, int]) -> None:
    """Give the new world empty ``folders`` of at most so many bytes, and a package that nothing can change."""
    for folder, size in folders.items():
        # A size of 0 would mean "no limit": without scratch space there is one page, which may not be written to.
        options = f"size={max(size, _PAGE)},nr_inodes={_FILES},mode={'0700' if size else '0500'}"
        _mount(b"tmpfs", folder, b"tmpfs", _FOLDER, options.encode())
    _mount(None, PACKAGE, None, _READ_ONLY, None)


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
