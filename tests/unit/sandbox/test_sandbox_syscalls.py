"""The filter is run here by a small interpreter, so that each decision can be asked for both architectures."""

from __future__ import annotations

import json
import struct

import pytest

from invocations.sandbox.isolation.seccomp import FRESH_PROFILE_FILE, PROFILE_FILE, build_profile
from sandbox import namespaces, siblings, syscalls

ALLOW, REFUSE, NO_SUCH_CALL, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
NOTHING_HAPPENS = 0x00050000
MEMFD_CREATE = {"x86_64": 319, "aarch64": 279}
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {"read": 0, "kill": 62, "clone": 56, "clone3": 435, "socket": 41, "fcntl": 72, "ioctl": 16, "prlimit64": 302,
               "execve": 59, "ptrace": 101, "mount": 165, "fchmod": 91, "tgkill": 234, "file_setattr": 469},
    "aarch64": {"read": 63, "kill": 129, "clone": 220, "clone3": 435, "socket": 198, "fcntl": 25, "ioctl": 29,
                "prlimit64": 261, "execve": 221, "ptrace": 117, "mount": 40, "fchmod": 52, "tgkill": 131, "file_setattr": 469},
}  # fmt: skip
MINUS_ONE = 0xFFFFFFFFFFFFFFFF


def decide(program: bytes, arch: int, number: int, *arguments: int) -> int:
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("<IIQ6Q", number, arch, 0, *padded)
    instructions = list(struct.iter_unpack("<HBBI", program))
    at, value = 0, 0
    while True:
        code, yes, no, operand = instructions[at]
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                value &= operand
            case 0x06:
                return int(operand)
            case _:
                held = {0x15: value == operand, 0x45: bool(value & operand), 0x35: value >= operand}[code]
                at += yes if held else no


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("call", "arguments", "decision"),
    [
        ("read", (), ALLOW),
        ("ptrace", (), REFUSE),
        ("mount", (), REFUSE),
        ("execve", (), REFUSE),
        ("clone3", (), NO_SUCH_CALL),
        ("kill", (1, 9), REFUSE),
        ("kill", (MINUS_ONE, 9), REFUSE),
        ("kill", (7, 9), ALLOW),
        ("kill", (0, 9), ALLOW),
        ("tgkill", (1, 1, 9), REFUSE),
        ("clone", (17,), ALLOW),
        ("clone", (0x10000000,), REFUSE),
        ("clone", (0x00020000 | 17,), REFUSE),
        ("socket", (1, 1, 0), ALLOW),
        ("socket", (1, 1 | 0x80800, 0), ALLOW),
        ("socket", (1, 2, 0), ALLOW),
        ("socket", (1, 3, 0), REFUSE),
        ("socket", (2, 1, 0), REFUSE),
        ("socket", (10, 1, 6), REFUSE),
        ("socket", (16, 3, 0), REFUSE),
        ("socket", (40, 1, 0), REFUSE),
        ("fcntl", (0, 1), ALLOW),
        ("fcntl", (0, 8), REFUSE),
        ("fcntl", (0, 15), REFUSE),
        ("fcntl", (0, 1035), ALLOW),
        ("fcntl", (0, 1036), REFUSE),
        ("fcntl", (0, 1038), REFUSE),
        ("ioctl", (0, 0x5412), REFUSE),
        ("ioctl", (0, 0x8901), REFUSE),
        ("ioctl", (0, 0x5401), ALLOW),
        ("ioctl", (0, 0x80086601), ALLOW),
        ("ioctl", (0, 0x40086602), REFUSE),
        ("ioctl", (0, 0x40046602), REFUSE),
        ("ioctl", (0, 0x401C5820), REFUSE),
        ("file_setattr", (), REFUSE),
        ("prlimit64", (0,), ALLOW),
        ("prlimit64", (1,), REFUSE),
        ("fchmod", (), ALLOW),
    ],
)
def test_a_tool_may_call(machine: str, call: str, arguments: tuple[int, ...], decision: int) -> None:
    program = syscalls.build_filter(machine, net=False, proc=False, keep_modes=False)

    assert decide(program, MACHINES[machine], NUMBERS[machine][call], *arguments) == decision


@pytest.mark.parametrize("machine", MACHINES)
def test_the_profile_opens_what_it_names(machine: str) -> None:
    program = syscalls.build_filter(machine, net=True, proc=True, keep_modes=True)
    arch, numbers = MACHINES[machine], NUMBERS[machine]

    assert decide(program, arch, numbers["execve"]) == ALLOW
    assert decide(program, arch, numbers["socket"], 2, 1, 0) == ALLOW
    assert decide(program, arch, numbers["socket"], 2, 2, 17) == ALLOW
    assert decide(program, arch, numbers["socket"], 10, 1, 262) == REFUSE  # MPTCP
    assert decide(program, arch, numbers["socket"], 2, 2, 136) == REFUSE  # UDP-Lite
    assert decide(program, arch, numbers["socket"], 2, 3, 0) == REFUSE
    assert decide(program, arch, numbers["fchmod"]) == NOTHING_HAPPENS
    assert decide(program, arch, MEMFD_CREATE[machine]) == ALLOW


@pytest.mark.parametrize("machine", MACHINES)
def test_where_some_programs_may_be_run_no_others_are_made_in_memory(machine: str) -> None:
    program = syscalls.build_filter(machine, net=False, proc=True, keep_modes=False, memory_files=False)

    assert decide(program, MACHINES[machine], MEMFD_CREATE[machine]) == NO_SUCH_CALL


@pytest.mark.parametrize("machine", MACHINES)
def test_a_process_in_new_namespaces_is_made_with_certain_flags_and_only_before_the_last_filter(machine: str) -> None:
    cloned = siblings.FLAGS | namespaces.NAMESPACES
    needed = syscalls.NEEDED_FOR_NAMESPACES
    arch, numbers = MACHINES[machine], NUMBERS[machine]
    first = syscalls.build_filter(machine, net=False, proc=False, keep_modes=False, spared=needed, cloned=cloned)
    last = syscalls.build_refusal_filter(machine, needed)

    others = [cloned & ~siblings.FLAGS | 17, cloned | 0x40000000, cloned & ~0x10000000, 0x10000000, 0x20000 | 17]
    plain = [17, siblings.FLAGS, 0x3D0F00]  # a thread's

    assert decide(first, arch, numbers["clone"], cloned) == ALLOW
    assert {decide(first, arch, numbers["clone"], flags) for flags in others} == {REFUSE}
    assert {decide(last, arch, numbers["clone"], flags) for flags in (cloned, *others)} == {REFUSE}
    assert {decide(program, arch, numbers["clone"], flags) for program in (first, last) for flags in plain} == {ALLOW}
    assert decide(first, arch, numbers["mount"]) == ALLOW
    assert decide(last, arch, numbers["mount"]) == REFUSE
    assert decide(last, arch, numbers["read"]) == ALLOW


def test_another_architecture_and_the_x32_numbers_are_no_way_around() -> None:
    program = syscalls.build_filter("x86_64", net=False, proc=False, keep_modes=False)

    assert decide(program, 0x40000003, 0) == KILL
    assert decide(program, MACHINES["x86_64"], 0x40000000 | 101) == KILL


def test_no_filter_is_made_for_a_machine_that_is_not_known() -> None:
    with pytest.raises(KeyError):
        syscalls.build_filter("riscv64", net=False, proc=False, keep_modes=False)


def test_the_committed_profile_of_the_container_is_the_one_the_module_writes() -> None:
    assert json.loads(PROFILE_FILE.read_text()) == build_profile()
    assert json.loads(FRESH_PROFILE_FILE.read_text()) == build_profile(fresh=True)


def test_for_namespaces_the_profile_adds_three_calls_with_the_flags_that_are_used() -> None:
    strict, fresh = build_profile()["syscalls"], build_profile(fresh=True)["syscalls"]

    added = [
        (rule["names"], [(each["index"], each["value"], each["op"]) for each in rule["args"]])
        for rule in fresh[len(strict) :]
    ]

    assert fresh[: len(strict)] == strict
    assert added == [
        (["clone"], [(0, siblings.FLAGS | namespaces.NAMESPACES, "SCMP_CMP_EQ")]),
        (["unshare"], [(0, namespaces.NAMESPACES, "SCMP_CMP_EQ")]),
        *((["mount"], [(3, flags, "SCMP_CMP_EQ")]) for flags in namespaces.MOUNT_FLAGS),
    ]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("target", "decision"), [(1, REFUSE), (7, REFUSE), (9, REFUSE), (MINUS_ONE, REFUSE), (8, ALLOW), (0, ALLOW)]
)
def test_who_else_is_not_to_be_touched(machine: str, target: int, decision: int) -> None:
    program = syscalls.build_filter(machine, net=False, proc=False, keep_modes=False, untouchable=(1, 7, 9))

    assert decide(program, MACHINES[machine], NUMBERS[machine]["kill"], target, 9) == decision
    assert decide(program, MACHINES[machine], NUMBERS[machine]["tgkill"], target, 9, 9) == decision


def test_where_a_call_sees_its_own_processes_only_it_may_signal_all_of_them() -> None:
    program = syscalls.build_filter("x86_64", net=False, proc=False, keep_modes=False, untouchable=())

    assert {decide(program, MACHINES["x86_64"], NUMBERS["x86_64"]["kill"], target, 9) for target in (1, MINUS_ONE)} == {
        ALLOW
    }


def test_the_profile_of_the_container_allows_nothing_by_default() -> None:
    profile = build_profile()
    allowed = {name for rule in profile["syscalls"] if "args" not in rule for name in rule["names"]}

    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert allowed.isdisjoint(
        {"ptrace", "mount", "unshare", "setns", "bpf", "io_uring_setup", "keyctl", "socket", "clone", "pidfd_open"}
    )
