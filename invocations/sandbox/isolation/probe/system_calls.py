"""System calls: what the kernel answers to calls that no tool needs.

Each is made so that an open kernel has no effect of it and answers otherwise than with EPERM: with an address that is none, a
flag or a number that does not exist. So EPERM means that a filter stood before it, and not that the process lacks a right.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket

from .child_process import ask_child

_libc = ctypes.CDLL(None, use_errno=True)
_NOWHERE = 1  # an address that is none
_NOBODY = -1
_KEY = 0x70726F62  # of shared memory that is not there
_NOTHING_RUNS = 0x2 | 0x4 | 0x8  # MS_NOSUID, NODEV, NOEXEC: how the level fresh mounts
_COLUMN = {"x86_64": 0, "aarch64": 1}

Call = tuple[tuple[int, "int | None"], tuple[int, ...]]

SYSTEM_CALLS: dict[str, Call] = {
    "io_uring_setup": ((425, 425), (0, _NOWHERE)),
    "io_uring_enter": ((426, 426), (_NOBODY, 0, 0, 0x8000, 0, 0)),
    "io_uring_register": ((427, 427), (_NOBODY, 999, 0, 0)),
    "io_setup": ((206, 0), (0, _NOWHERE)),
    "ptrace": ((101, 117), (16, 0, 0, 0)),
    "process_vm_readv": ((310, 270), (1, 0, 0, 0, 0, 1)),
    "process_vm_writev": ((311, 271), (1, 0, 0, 0, 0, 1)),
    "process_madvise": ((440, 440), (_NOBODY, 0, 0, 0, 1)),
    "kcmp": ((312, 272), (0, 0, 999, 0, 0)),
    "pidfd_open": ((434, 434), (_NOBODY, 0)),
    "pidfd_getfd": ((438, 438), (_NOBODY, 0, 1)),
    "pidfd_send_signal": ((424, 424), (_NOBODY, 0, 0, 0xFFFF)),
    "rt_sigqueueinfo": ((129, 138), (_NOBODY, 0, _NOWHERE)),
    "tkill": ((200, 130), (_NOBODY, 0)),
    "perf_event_open": ((298, 241), (_NOWHERE, 0, -1, -1, 0xFFFF)),
    "bpf": ((321, 280), (0, _NOWHERE, 8192)),
    "userfaultfd": ((323, 282), (0x40000001,)),
    "add_key": ((248, 217), (_NOWHERE, _NOWHERE, 0, 0, 0)),
    "request_key": ((249, 218), (_NOWHERE, _NOWHERE, _NOWHERE, 0)),
    "keyctl": ((250, 219), (9999, 0, 0, 0, 0)),
    "shmget": ((29, 194), (_KEY, 4096, 0)),
    "semget": ((64, 190), (_KEY, 1, 0)),
    "msgget": ((68, 186), (_KEY, 0)),
    "mq_open": ((240, 180), (_NOWHERE, 0, 0, 0)),
    "mq_unlink": ((241, 181), (_NOWHERE,)),
    "name_to_handle_at": ((303, 264), (_NOBODY, _NOWHERE, _NOWHERE, _NOWHERE, 0xFFFF)),
    "fanotify_init": ((300, 262), (0x200, 0x40000000)),
    "quotactl": ((179, 60), (0xFF, 0, 0, 0)),
    "memfd_secret": ((447, 447), (0xFFFF,)),
    "personality": ((135, 92), (0x0400000,)),
    "set_mempolicy": ((238, 237), (9999, 0, 0)),
    "move_pages": ((279, 239), (_NOBODY, 0, 0, 0, 0, 0xFFFF)),
    "clock_settime": ((227, 112), (9999, _NOWHERE)),
    "adjtimex": ((159, 171), (_NOWHERE,)),
    "settimeofday": ((164, 170), (_NOWHERE, 0)),
    "sched_setscheduler": ((144, 119), (_NOBODY, 0, 0)),
    "sched_setaffinity": ((203, 122), (_NOBODY, 0, _NOWHERE)),
    "ioprio_set": ((251, 30), (99, 0, 0)),
    "mknodat": ((259, 33), (_NOBODY, _NOWHERE, 0o60000, 0)),
    "iopl": ((172, None), (9,)),
    "ioperm": ((173, None), (-1, -1, 1)),
    "modify_ldt": ((154, None), (0, 0, 0)),
}
NAMESPACES: dict[str, Call] = {
    "unshare": ((272, 97), (1,)),
    "setns": ((308, 268), (_NOBODY, 0)),
    "clone for a new user": ((56, 220), (0x10000211, 0, 0, 0, 0)),
    "clone3": ((435, 435), (_NOWHERE, 0)),
    "mount": ((165, 40), (0, _NOWHERE, 0, 0, 0)),
    "umount2": ((166, 39), (_NOWHERE, 0xFFFF)),
    "chroot": ((161, 51), (_NOWHERE,)),
    "open_tree": ((428, 428), (_NOBODY, _NOWHERE, 0xFFFFFFFF)),
    "mount_setattr": ((442, 442), (_NOBODY, _NOWHERE, 0xFFFF0000, 0, 0)),
}
RARE_SOCKETS = {
    "netlink": (16, 3, 0), "vsock": (40, 1, 0), "packet": (17, 3, 0), "raw": (2, 3, 1), "mptcp": (2, 1, 262),
    "mptcp6": (10, 1, 262), "udplite": (2, 2, 136), "sctp": (2, 1, 132), "alg": (38, 5, 0), "bluetooth": (31, 3, 1),
    "can": (29, 3, 1), "tipc": (30, 1, 0), "xdp": (44, 3, 0), "key": (15, 3, 2), "smc": (43, 1, 0), "rds": (21, 5, 0),
    "nfc": (39, 3, 1), "ieee802154": (36, 2, 0),
}  # fmt: skip


def _number_of(result: int) -> int:
    return ctypes.get_errno() if result < 0 else 0


def try_system_call(call: Call) -> int | None:
    """The error number of one call; 0 when it succeeded, None when this machine has no such call."""
    numbers, arguments = call
    number = numbers[_COLUMN[platform.machine()]]
    if number is None:
        return None
    return _number_of(_libc.syscall(number, *(ctypes.c_long(each) for each in arguments)))


def find_let_through(calls: dict[str, Call]) -> list[str]:
    """Which of these calls reach the kernel, each with its answer. A call that this kernel does not have reaches nothing."""
    refused = (errno.EPERM, errno.ENOSYS, None)
    answers = ask_child(lambda: {name: try_system_call(call) for name, call in calls.items()})
    return [f"{name} ({_name(answer)})" for name, answer in answers.items() if answer not in refused]


def _name(number: int) -> str:
    return errno.errorcode.get(number, str(number)) if number else "done"


def find_open_sockets(sockets: dict[str, tuple[int, int, int]]) -> list[str]:
    """Which of these sockets can be had."""
    got = []
    for name, (family, kind, protocol) in sockets.items():
        try:
            socket.socket(family, kind, protocol).close()
        except OSError:
            continue
        got.append(name)
    return got


def read_status() -> dict[str, str]:
    """What the kernel says of this process."""
    with open("/proc/self/status") as file:
        return {name: value.strip() for name, _, value in (line.partition(":") for line in file)}


def find_capabilities() -> list[str]:
    """Capabilities that this process has, or could get."""
    said = read_status()
    return [
        f"{name} {said[name]}" for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb") if int(said[name], 16)
    ]


def may_install_a_filter() -> bool:
    """Without a right to, a process may put a filter on itself only when it can get no new privileges any more."""
    allow_all = (ctypes.c_uint64 * 1)(0x7FFF0000_00000006)  # one instruction: return "allow"

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    program = Program(1, ctypes.addressof(allow_all))
    return bool(ask_child(lambda: _libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0))


def try_new_namespaces(uid: int, place: str) -> str:
    """Why a process here cannot go into namespaces of its own, with a file system of its own at this place; "" if it can."""
    new_user, new_pid, new_mount, new_ipc = 0x10000000, 0x20000000, 0x00020000, 0x08000000

    def go() -> str:
        if _libc.unshare(new_user | new_pid | new_mount | new_ipc):
            return f"unshare: {os.strerror(ctypes.get_errno())}"
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{uid} {uid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        return str(ask_child(lambda: _mount(place)))

    said = ask_child(lambda: _text_or_error(go))
    return "the process was ended" if said is None else str(said)


def _mount(place: str) -> str:
    """In the first process of the new namespaces."""
    if os.getpid() != 1:
        return "the new process is not the first one"
    if _libc.mount(b"none", place.encode(), b"tmpfs", ctypes.c_ulong(_NOTHING_RUNS), b"size=4k"):
        return f"mount: {os.strerror(ctypes.get_errno())}"
    return ""


def _text_or_error(function: object) -> str:
    try:
        return str(function())  # type: ignore[operator]
    except OSError as error:
        return str(error)
