"""How closed is the container of one call?

Every wall that the engine can put up, as the body of its "create a container" request. ``docs`` of the flags and what
each was measured to do: the sandbox chapter of the threat model. Nothing of the host is mounted: the tool arrives
through the channel.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from invocations.sandbox.seccomp import PROFILE_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from invocations.sandbox.base import Limits

_MIB = 1024 * 1024
_PAGE = 4096
_RUNNER_BYTES = 32 * _MIB  # the runner's own memory; the profile's limit is for the tool
_OWN_PROCESSES = 3  # supervisor, zygote, and for a moment the one between zygote and tool
_PACKAGE_COPIES = 3  # in the frame, in the child, in the file system
_SCRATCH_FILES = 4096
_NOTHING_RUNS = "noexec,nosuid,nodev"

MASKED_PATHS = (
    # what Docker masks by itself; giving the list replaces it
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",
    "/proc/timer_list", "/proc/timer_stats", "/sys/devices/virtual/powercap", "/sys/firmware",
    # what tells a tool about the host
    "/proc/cmdline", "/proc/config.gz", "/proc/diskstats", "/proc/interrupts", "/proc/iomem", "/proc/ioports",
    "/proc/kallsyms", "/proc/key-users", "/proc/modules", "/proc/partitions", "/proc/pressure", "/proc/slabinfo",
    "/proc/vmallocinfo", "/sys/block", "/sys/bus", "/sys/class/dmi", "/sys/class/net", "/sys/devices/virtual/dmi",
    "/sys/kernel", "/sys/module",
)  # fmt: skip
READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

_SECCOMP = json.dumps(json.loads(PROFILE_FILE.read_text()), separators=(",", ":"))


def container_config(
    *, image: str, uid: int, limits: Limits, package_bytes: int, labels: Mapping[str, str], runtime: str = ""
) -> dict[str, Any]:
    """The request body for one box. The image brings its own command."""
    memory = limits.memory_bytes + _RUNNER_BYTES + _PACKAGE_COPIES * package_bytes
    private = f"uid={uid},gid={uid},{_NOTHING_RUNS}"
    # A size of 0 would mean "no limit": a tool without scratch space gets one page that it may not write to.
    scratch_mode = "0700" if limits.tmp_bytes else "0500"
    host: dict[str, Any] = {
        "AutoRemove": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", f"seccomp={_SECCOMP}"],
        "ReadonlyRootfs": True,
        "NetworkMode": "none",
        "IpcMode": "none",
        "PidsLimit": limits.processes + _OWN_PROCESSES,
        "Memory": memory,
        "MemorySwap": memory,
        "NanoCpus": 1_000_000_000,
        "OomScoreAdj": 900,
        "Ulimits": [{"Name": "nofile", "Soft": 256, "Hard": 256}, {"Name": "core", "Soft": 0, "Hard": 0}],
        "Tmpfs": {
            "/w": f"size={max(limits.tmp_bytes, _PAGE)},nr_inodes={_SCRATCH_FILES},mode={scratch_mode},{private}",
            "/p": f"size={48 * _MIB},nr_inodes=8192,mode=0700,{private}",
            # Even a read-only container has a message queue file system that everybody may write to.
            "/dev/mqueue": f"ro,size=4k,mode=0000,{_NOTHING_RUNS}",
        },
        "LogConfig": {"Type": "none", "Config": {}},
        "MaskedPaths": list(MASKED_PATHS),
        "ReadonlyPaths": list(READ_ONLY_PATHS),
        "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
        "Init": False,
        "Privileged": False,
    }
    if runtime:
        host["Runtime"] = runtime
    return {
        "Image": image,
        "User": f"{uid}:{uid}",
        "Hostname": "sandbox",
        "NetworkDisabled": True,
        "Tty": False,
        # The engine closes the box's stdin when the hub's connection ends, and the runner ends with it.
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Labels": dict(labels),
        "HostConfig": host,
    }
