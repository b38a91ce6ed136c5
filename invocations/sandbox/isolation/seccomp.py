"""Seccomp profile: the system calls that a sandbox container may make at all.

The first of two seccomp tiers: an allow-list for the whole container, given to the engine. Where each call gets namespaces
of its own (level ``fresh``), the processes that make them need a few calls more, with exactly the flags that they use; the
second tier takes them away again before a tool is loaded. The two files beside this one are what this module writes; a
test compares them::

    python -m invocations.sandbox.isolation.seccomp
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sandbox import namespaces, siblings

PROFILE_FILE = Path(__file__).with_name("seccomp.json")
FRESH_PROFILE_FILE = Path(__file__).with_name("seccomp-fresh.json")

_ALLOWED = {
    "files": """
        read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat openat2 creat close
        close_range lseek fstat stat lstat newfstatat statx access faccessat faccessat2 ioctl fcntl flock fsync
        fdatasync ftruncate truncate fallocate fadvise64 sync_file_range copy_file_range sendfile splice tee
        getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir rename renameat renameat2 link linkat unlink
        unlinkat symlink symlinkat readlink readlinkat chmod fchmod fchmodat chown fchown lchown fchownat umask
        utimensat utime utimes futimesat statfs fstatfs getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
        pipe pipe2 dup dup2 dup3 memfd_create inotify_init inotify_init1 inotify_add_watch inotify_rm_watch""",
    "memory": "mmap mprotect munmap mremap brk madvise mincore msync mlock munlock membarrier",
    "waiting": """
        select pselect6 poll ppoll epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
        eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime futex futex_waitv""",
    "signals": """
        rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack
        restart_syscall pause alarm kill tgkill""",
    "time": """
        nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times getitimer setitimer
        timer_create timer_settime timer_gettime timer_getoverrun timer_delete""",
    "processes": """
        exit exit_group fork vfork execve execveat wait4 waitid set_robust_list get_robust_list set_tid_address rseq
        arch_prctl getpid getppid gettid getpgrp getpgid setpgid getsid setsid getpriority setpriority sysinfo uname
        getrusage getrlimit setrlimit prlimit64 getcpu sched_yield sched_getaffinity sched_getparam
        sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_getattr
        getrandom""",
    "users": """
        getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid
        setresgid setgroups setfsuid setfsgid capget capset""",
    "walls": "prctl seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self",
    "sockets": """
        socketpair connect accept accept4 bind listen getsockname getpeername setsockopt getsockopt shutdown sendto
        recvfrom sendmsg recvmsg sendmmsg recvmmsg""",
}

_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _DATAGRAM = 1, 2
_ANY, _TCP, _UDP = 0, 6, 17
_KIND_BITS = 15  # the rest of socket()'s second argument are flags
_NEW_NAMESPACES = 0x7E020000
_NO_SUCH_CALL = 38


def _when(index: int, value: int, *, mask: int | None = None) -> dict[str, Any]:
    if mask is None:
        return {"index": index, "value": value, "op": "SCMP_CMP_EQ"}
    return {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}


def _allow(names: list[str], *conditions: dict[str, Any]) -> dict[str, Any]:
    rule: dict[str, Any] = {"names": names, "action": "SCMP_ACT_ALLOW"}
    return rule | ({"args": list(conditions)} if conditions else {})


def build_profile(*, fresh: bool = False) -> dict[str, Any]:
    """The profile in the engine's form. What it does not name fails with EPERM."""
    rules = [_allow(names.split()) for names in _ALLOWED.values()]
    # clone3 has its flags in memory, where a filter cannot see them; libc falls back to clone.
    rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NO_SUCH_CALL})
    rules.append(_allow(["clone"], _when(0, 0, mask=_NEW_NAMESPACES)))
    rules.append(_allow(["personality"], _when(0, 0)))
    rules.append(_allow(["socket"], _when(0, _UNIX)))
    for family in (_INET, _INET6):
        for kind, protocol in ((_STREAM, _ANY), (_STREAM, _TCP), (_DATAGRAM, _ANY), (_DATAGRAM, _UDP)):
            rules.append(_allow(["socket"], _when(0, family), _when(1, kind, mask=_KIND_BITS), _when(2, protocol)))
    if fresh:
        rules.append(_allow(["clone"], _when(0, siblings.FLAGS | namespaces.NAMESPACES)))
        rules.append(_allow(["unshare"], _when(0, namespaces.NAMESPACES)))
        rules += [_allow(["mount"], _when(3, flags)) for flags in namespaces.MOUNT_FLAGS]
    return {
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": 1,
        "archMap": [
            {"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []},
            {"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []},
        ],
        "syscalls": rules,
    }


def main() -> None:
    for path, fresh in ((PROFILE_FILE, False), (FRESH_PROFILE_FILE, True)):
        path.write_text(json.dumps(build_profile(fresh=fresh), indent=1) + "\n")


if __name__ == "__main__":
    main()
