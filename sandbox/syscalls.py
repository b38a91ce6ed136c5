"""System calls: those that a tool's process may make.

The second of two seccomp tiers. The first is the container's allow-list (``invocations/sandbox/isolation/seccomp.py``); this
one is put on by the tool's own process just before it loads the tool, so it can refuse what the supervisor itself still
needed and what depends on the profile. It names what it refuses and allows the rest, because the first tier has
already removed everything that is unknown. Numbers are given for x86-64 and arm64; ``None`` where the architecture
has no such call.
"""

from __future__ import annotations

import struct

_REFUSED_ALWAYS: dict[str, dict[str, tuple[int | None, int | None]]] = {
    "other processes": {
        "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
        "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
        "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "tkill": (200, 130),
        "process_madvise": (440, 440), "process_mrelease": (448, 448),
        "setpriority": (141, 140), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
        "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "ioprio_set": (251, 30),
    },
    "memory that outlives the call": {
        "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197),
        "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
        "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187),
        "mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182), "mq_timedreceive": (243, 183),
        "mq_notify": (244, 184), "mq_getsetattr": (245, 185),
        "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    },
    "attributes that outlive the call": {
        "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "removexattr": (197, 14),
        "lremovexattr": (198, 15), "fremovexattr": (199, 16), "setxattrat": (463, 463), "removexattrat": (466, 466),
        "file_setattr": (469, 469),
    },
    "asynchronous input and output": {
        "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
        "io_setup": (206, 0), "io_destroy": (207, 1), "io_getevents": (208, 4), "io_submit": (209, 2),
        "io_cancel": (210, 3),
    },
    "namespaces and mounts": {
        "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
        "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
        "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    },
    "the kernel itself": {
        "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282), "migrate_pages": (256, 238),
        "move_pages": (279, 239), "mbind": (237, 235), "set_mempolicy": (238, 237), "get_mempolicy": (239, 236),
        "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
        "kexec_file_load": (320, 294), "reboot": (169, 142), "iopl": (172, None), "ioperm": (173, None),
        "modify_ldt": (154, None), "syslog": (103, 116), "acct": (163, 89), "settimeofday": (164, 170),
        "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266), "swapon": (167, 224),
        "swapoff": (168, 225), "quotactl": (179, 60), "mknod": (133, None), "mknodat": (259, 33),
        "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
        "fanotify_mark": (301, 263), "vhangup": (153, 58),
    },
}  # fmt: skip
_REFUSED_WITHOUT_PROC = {"execve": (59, 221), "execveat": (322, 281)}
# Landlock says nothing of modes, and the package belongs to the user that tools run as. Where a later call would find it as
# this one leaves it, and where only modes protect it, they stay as they are. Tools are told that it worked: everything in a
# box has one user, so it makes no difference to them, and much of the standard library sets modes in passing.
_MODES = {"chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452)}

NEEDED_FOR_NAMESPACES = ("unshare", "mount")  # until a call has its own
# A file in memory can be run, and no path names it: where some programs may be run, others must not be made.
_MEMFD_CREATE = (319, 279)

_CLONE3, _KILL, _TGKILL, _CLONE = (435, 435), (62, 129), (234, 131), (56, 220)
_PRLIMIT, _FCNTL, _IOCTL, _SOCKET = (302, 261), (72, 25), (16, 29), (41, 198)

_NEW_NAMESPACES = 0x7E020080
_SIGNALS_TO_OTHERS = (8, 10, 15)  # fcntl: F_SETOWN, F_SETSIG, F_SETOWN_EX
_TERMINAL_AND_OWNER = (0x5412, 0x541C, 0x8901, 0x8902)  # ioctl: TIOCSTI, TIOCLINUX, FIOSETOWN, SIOCSPGRP
# What a file is said to be for stays with it, and nobody is told: a call would leave word for the next one in it.
_HINTS = (1036, 1038)  # fcntl: F_SET_RW_HINT, F_SET_FILE_RW_HINT
_ATTRIBUTES = (  # ioctl: FS_IOC_SETFLAGS, FS_IOC_SETVERSION (64 and 32 bits), FS_IOC_FSSETXATTR
    0x40086602, 0x40046602, 0x40087602, 0x40047602, 0x401C5820,
)  # fmt: skip
_UNIX, _INET, _INET6 = 1, 2, 10
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

_LOAD, _IF_EQUAL, _IF_ANY_BIT, _IF_AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_ALLOW, _REFUSE, _NO_SUCH_CALL, _KILL_PROCESS = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_DO_NOTHING = 0x00050000  # and say that it is done
_NUMBER, _ARCH, _ARGUMENT = 0, 4, (16, 24, 32)  # offsets in struct seccomp_data (low halves of the arguments)

_Instruction = tuple[int, int, int, int]
_REFUSE_NOW: _Instruction = (_RETURN, 0, 0, _REFUSE)
_ALLOW_NOW: _Instruction = (_RETURN, 0, 0, _ALLOW)


def build_filter(
    machine: str,
    *,
    net: bool,
    proc: bool,
    keep_modes: bool,
    memory_files: bool = True,
    untouchable: tuple[int, ...] = (1,),
    spared: tuple[str, ...] = (),
    cloned: int = 0,
) -> bytes:
    """The BPF program for :func:`sandbox.confinement.filter_system_calls`; ``KeyError`` for an unknown machine.

    ``untouchable`` are the processes that get no signal from a tool, nor does "everybody"; none where a call has process
    numbers of its own, and sees no others. ``spared`` are calls that :func:`build_refusal_filter` is to refuse later, and
    ``cloned`` the flags
    with which a process in new namespaces is made until then.
    """
    _, column = _ARCHITECTURES[machine]
    program = _begin(machine)

    def rule(numbers: tuple[int | None, int | None], body: list[_Instruction]) -> None:
        number = numbers[column]
        if number is not None:
            program.extend([(_IF_EQUAL, 0, len(body), number), *body])

    groups = _REFUSED_ALWAYS.values()
    refused = [numbers for group in groups for name, numbers in group.items() if name not in spared]
    refused += () if proc else _REFUSED_WITHOUT_PROC.values()
    for numbers in refused:
        rule(numbers, [_REFUSE_NOW])
    for numbers in _MODES.values() if keep_modes else ():
        rule(numbers, [(_RETURN, 0, 0, _DO_NOTHING)])
    if not memory_files:
        rule(_MEMFD_CREATE, [(_RETURN, 0, 0, _NO_SUCH_CALL)])  # who can do without falls back to a file
    rule(_CLONE3, [(_RETURN, 0, 0, _NO_SUCH_CALL)])  # its flags are in memory, out of sight; libc falls back to clone
    rule(_CLONE, _clone_unless_new_namespaces(cloned))
    for call in (_KILL, _TGKILL) if untouchable else ():
        rule(call, _refuse_if(0, (*untouchable, 0xFFFFFFFF)))
    rule(_PRLIMIT, _allow_if(0, (0,)))
    rule(_FCNTL, _refuse_if(1, _SIGNALS_TO_OTHERS + _HINTS))
    rule(_IOCTL, _refuse_if(1, _TERMINAL_AND_OWNER + _ATTRIBUTES))
    families = (_UNIX, _INET, _INET6) if net else (_UNIX,)
    kinds = [(_AND, 0, 0, 15), (_IF_EQUAL, 2, 0, 1), (_IF_EQUAL, 1, 0, 2), _REFUSE_NOW]  # stream and datagram
    rule(_SOCKET, [*_go_on_if(0, families), (_LOAD, 0, 0, _ARGUMENT[1]), *kinds, *_allow_if(2, (0, 6, 17))])
    program.append(_ALLOW_NOW)
    return _assemble(program)


def build_refusal_filter(machine: str, names: tuple[str, ...]) -> bytes:
    """A program that refuses these calls, and new namespaces: a second one on top of the first."""
    _, column = _ARCHITECTURES[machine]
    program = _begin(machine)
    for group in _REFUSED_ALWAYS.values():
        for name in set(group).intersection(names):
            number = group[name][column]
            if number is not None:
                program += [(_IF_EQUAL, 0, 1, number), _REFUSE_NOW]
    body = _clone_unless_new_namespaces()
    return _assemble([*program, (_IF_EQUAL, 0, len(body), _CLONE[column]), *body, _ALLOW_NOW])


def _clone_unless_new_namespaces(spared: int = 0) -> list[_Instruction]:
    """``spared`` are flags that are let through all the same, exactly these."""
    exactly = [(_IF_EQUAL, 0, 1, spared), _ALLOW_NOW] if spared else []
    return [(_LOAD, 0, 0, _ARGUMENT[0]), *exactly, (_IF_ANY_BIT, 0, 1, _NEW_NAMESPACES), _REFUSE_NOW, _ALLOW_NOW]


def _begin(machine: str) -> list[_Instruction]:
    arch, _ = _ARCHITECTURES[machine]
    program: list[_Instruction] = [(_LOAD, 0, 0, _ARCH), (_IF_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _KILL_PROCESS)]
    program.append((_LOAD, 0, 0, _NUMBER))
    if machine == "x86_64":  # the x32 numbers would be a second door to every call
        program += [(_IF_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL_PROCESS)]
    return program


def _assemble(program: list[_Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _tests(argument: int, values: tuple[int, ...]) -> list[_Instruction]:
    """Load an argument; equal to any value: skip the one instruction that follows."""
    last = len(values)
    tests = [(_IF_EQUAL, last - index, 0, value) for index, value in enumerate(values)]
    return [(_LOAD, 0, 0, _ARGUMENT[argument]), *tests]


def _go_on_if(argument: int, values: tuple[int, ...]) -> list[_Instruction]:
    return [*_tests(argument, values), _REFUSE_NOW]


def _allow_if(argument: int, values: tuple[int, ...]) -> list[_Instruction]:
    return [*_tests(argument, values), _REFUSE_NOW, _ALLOW_NOW]


def _refuse_if(argument: int, values: tuple[int, ...]) -> list[_Instruction]:
    return [*_tests(argument, values), _ALLOW_NOW, _REFUSE_NOW]
