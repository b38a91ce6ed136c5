"""Reach parts of the kernel that no tool needs."""

from __future__ import annotations

import ctypes
import ctypes.util
import mmap
import os
import platform
import resource
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_libc = ctypes.CDLL(None, use_errno=True)
_COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
_FORBIDDEN = {
    "mount": ((165, 40), (b"none", b"/w", b"tmpfs", 0, None)),
    "umount2": ((166, 39), (b"/w", 2)),
    "unshare user": ((272, 97), (0x10000000,)),
    "unshare pid": ((272, 97), (0x20000000,)),
    "setns": ((308, 268), (0, 0)),
    "chroot": ((161, 51), (b"/w",)),
    "pivot_root": ((155, 41), (b"/w", b"/w")),
    "fsopen": ((430, 430), (b"tmpfs", 0)),
    "io_uring_setup": ((425, 425), (8, bytes(120))),
    "io_setup": ((206, 0), (8, bytes(8))),
    "bpf": ((321, 280), (0, bytes(72), 72)),
    "perf_event_open": ((298, 241), (struct.pack("II", 1, 112) + bytes(104), 0, -1, -1, 0)),
    "userfaultfd": ((323, 282), (1,)),
    "add_key": ((248, 217), (b"user", b"attack", b"x", 1, -3)),
    "keyctl": ((250, 219), (0, -3, 1)),
    "shmget": ((29, 194), (0x5155, 4096, 0o1600)),
    "msgget": ((68, 186), (0x5155, 0o1600)),
    "semget": ((64, 190), (0x5155, 1, 0o1600)),
    "mq_open": ((240, 180), (b"attack", 0o102, 0o600, None)),
    "personality": ((135, 92), (0x0040000,)),
    "pidfd_open": ((434, 434), (1, 0)),
    "name_to_handle_at": ((303, 264), (-100, b"/", bytes(136), bytes(4), 0)),
    "fanotify_init": ((300, 262), (0, 0)),
    "syslog": ((103, 116), (3, bytes(64), 64)),
    "init_module": ((175, 105), (b"", 0, b"")),
    "kexec_load": ((246, 104), (0, 0, None, 0)),
    "reboot": ((169, 142), (0xFEE1DEAD, 672274793, 0)),
    "swapon": ((167, 224), (b"/w/x", 0)),
    "settimeofday": ((164, 170), (bytes(16), None)),
    "acct": ((163, 89), (b"/w/x",)),
    "quotactl": ((179, 60), (0x800002, None, 0, None)),
    "setpriority": ((141, 140), (0, 0, -20)),
    "memfd_secret": ((447, 447), (0,)),
    "process_vm_writev": ((311, 271), (1, None, 0, None, 0, 0)),
    "kcmp": ((312, 272), (1, 1, 0, 0, 0)),
    "pidfd_getfd": ((438, 438), (0, 0, 0)),
    "process_madvise": ((440, 440), (0, None, 0, 0, 0)),
    "process_mrelease": ((448, 448), (0, 0)),
    "open_by_handle_at": ((304, 265), (-100, bytes(136), 0)),
    "vmsplice": ((278, 75), (1, None, 0, 0)),
    "move_pages": ((279, 239), (0, 0, None, None, None, 0)),
    "set_mempolicy": ((238, 237), (0, None, 0)),
    "iopl": ((172, -1), (3,)),
    "modify_ldt": ((154, -1), (1, bytes(16), 16)),
    "vhangup": ((153, 58), ()),
    "sethostname": ((170, 161), (b"x", 1)),
    "adjtimex": ((159, 171), (struct.pack("I", 1) + bytes(204),)),
    "clock_settime": ((227, 112), (0, bytes(16))),
    "delete_module": ((176, 106), (b"x", 0)),
    "finit_module": ((313, 273), (0, b"", 0)),
    "ioprio_set": ((251, 30), (1, 0, 1 << 13)),
    "sched_setattr": ((314, 274), (0, struct.pack("IIQiIQQQ", 48, 1, 0, 0, 1, 0, 0, 0), 0)),
    "nfsservctl": ((180, 42), (0, None, None)),
    "lookup_dcookie": ((212, 18), (1, bytes(64), 64)),
    "landlock of others": ((446, 446), (-1, 0)),
    "mount_setattr": ((442, 442), (-100, b"/", 0x8000, bytes(32), 32)),
    "clone new user": ((56, 220), (0x10000011, 0, 0, 0, 0)),
}


def system_calls() -> list[str]:
    got = []
    for name, (numbers, arguments) in _FORBIDDEN.items():
        if numbers[_COLUMN] < 0:
            continue  # this kind of machine has no such call
        result = _libc.syscall(numbers[_COLUMN], *arguments)
        if result == 0 and name.startswith("clone"):
            os._exit(0)
        if result >= 0:
            got.append(name)
    return got


def rare_sockets() -> list[str]:
    got = []
    for name, family, kind, protocol in (
        ("vsock", 40, 1, 0), ("netlink", 16, 3, 0), ("packet", 17, 3, 0), ("raw", 2, 3, 1), ("raw6", 10, 3, 58),
        ("mptcp", 2, 1, 262), ("udplite", 2, 2, 136), ("sctp", 2, 1, 132), ("alg", 38, 5, 0), ("bluetooth", 31, 3, 1),
        ("can", 29, 3, 1), ("tipc", 30, 1, 0), ("xdp", 44, 3, 0), ("key", 15, 3, 2), ("smc", 43, 1, 0), ("rds", 21, 5, 0),
        ("ax25", 3, 5, 0), ("inet", 2, 1, 0), ("inet6", 10, 2, 0),
    ):  # fmt: skip
        try:
            socket.socket(family, kind, protocol).close()
        except OSError:
            continue
        got.append(name)
    return got


def another_user() -> list[str]:
    got = []
    acts: dict[str, Callable[[], object]] = {
        "setuid": lambda: os.setuid(0),
        "setgid": lambda: os.setgid(0),
        "setgroups": lambda: os.setgroups([0]),
        "setresuid": lambda: os.setresuid(-1, 0, -1),
        "chown": lambda: os.chown("/w", 0, 0),
        "mknod": lambda: os.mknod("/w/disk", 0o60600, os.makedev(8, 0)),
    }
    for name, act in acts.items():
        try:
            act()
        except OSError:
            continue
        got.append(name)
    return got


def a_program_of_its_own() -> list[str]:
    got = []
    program = Path("/proc/self/exe").read_bytes()
    Path("/w/program").write_bytes(program)
    os.chmod("/w/program", 0o4755)
    paths = ["/w/program"]
    try:
        memory = os.memfd_create("program")
        os.write(memory, program)
        paths.append(f"/proc/self/fd/{memory}")
    except OSError:
        pass
    for path in paths:
        pid = os.fork()
        if pid == 0:
            try:
                os.execv(path, [path])
            except OSError:
                os._exit(77)
        _, status = os.waitpid(pid, 0)
        if os.waitstatus_to_exitcode(status) != 77:
            got.append(path)
    return got


def code_from_a_file() -> list[str]:
    Path("/w/code").write_bytes(b"\xc3" * 4096)
    with open("/w/code", "rb") as file:
        try:
            mmap.mmap(file.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        except OSError:
            return []
    return ["executable mapping of a written file"]


def a_program_by_the_loader() -> list[str]:
    """Programs may not be run; the dynamic loader is a program that runs programs. Nor may a library be written and loaded."""
    got = []
    for loader in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"):
        pid = os.fork()
        if pid == 0:
            try:
                os.execv(loader, [loader, "/proc/self/exe"])
            except OSError:
                os._exit(77)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 77:
            got.append(loader)
    pid = os.fork()
    if pid == 0:
        memory = os.open("/w/script", os.O_CREAT | os.O_RDWR, 0o700)
        os.write(memory, b"#!/proc/self/exe -c\nprint(1)\n")
        try:
            os.execve(memory, ["x"], {})
        except OSError:
            os._exit(77)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 77:
        got.append("a script")
    try:
        Path("/w/lib.so").write_bytes(Path(ctypes.util.__file__).read_bytes())
        ctypes.CDLL("/w/lib.so")
        got.append("a library")
    except OSError:
        pass
    return got


def a_dump_of_memory() -> list[str]:
    resource_limits = resource.getrlimit(resource.RLIMIT_CORE)
    pid = os.fork()
    if pid == 0:
        os.chdir("/w")
        os.kill(os.getpid(), 11)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return ["a dump"] if os.WCOREDUMP(status) or os.listdir("/w") or resource_limits != (0, 0) else []


def devices() -> list[str]:
    """Terminals, disks, memory, the machine's own channel to its host: what may be there, opened to write."""
    got = []
    for name in (
        "ptmx", "pts/ptmx", "pts/0", "tty", "console", "mem", "kmem", "port", "kmsg", "kvm", "fuse", "net/tun", "vsock",
        "vhost-vsock", "vda", "sda", "loop0", "loop-control", "mapper/control", "snapshot", "hpet", "rtc0", "uinput",
        "userfaultfd", "udmabuf", "dri/card0", "random", "urandom", "full", "zero", "shm", "mqueue", "core",
    ):  # fmt: skip
        try:
            os.close(os.open(f"/dev/{name}", os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
        except OSError:
            continue
        got.append(name)
    return got


def limits_raised() -> list[str]:
    got = []
    for name in ("RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CPU", "RLIMIT_CORE", "RLIMIT_MEMLOCK", "RLIMIT_FSIZE"):
        limit = getattr(resource, name)
        _, hard = resource.getrlimit(limit)
        try:
            resource.setrlimit(limit, (hard + 1, hard + 1))
        except (OSError, ValueError):
            continue
        got.append(name)
    return got


def facts_about_the_host() -> list[str]:
    got = []
    for path in (
        "/proc/kallsyms", "/proc/modules", "/proc/kcore", "/proc/cmdline", "/proc/config.gz", "/proc/keys", "/proc/slabinfo",
        "/proc/iomem", "/proc/diskstats", "/proc/partitions", "/proc/interrupts", "/proc/timer_list", "/proc/sched_debug",
        "/proc/sysrq-trigger", "/proc/pressure/cpu", "/sys/kernel/uevent_helper", "/sys/class/dmi/id/product_name",
        "/sys/firmware", "/sys/module", "/sys/block", "/proc/meminfo", "/proc/1/mountinfo", "/dev/kmsg",
        "/etc/passwd", "/etc/shadow", "/etc/hosts",
    ):  # fmt: skip
        try:
            if os.listdir(path) if os.path.isdir(path) else Path(path).read_bytes():
                got.append(path)
        except OSError:
            continue
    return got


def settings_of_the_kernel() -> list[str]:
    got = []
    for path in (
        "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger",
        "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/pids/pids.max",
        "/sys/kernel/uevent_helper", "/proc/self/coredump_filter",
    ):  # fmt: skip
        try:
            with open(path, "r+") as file:
                file.write("1")
        except OSError:
            continue
        if path != "/proc/self/coredump_filter":
            got.append(path)
    return got
