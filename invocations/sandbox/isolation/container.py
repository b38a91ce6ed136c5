"""Container options: how closed the container of a box is.

Every wall that the engine can put up, as the body of its "create a container" request. ``docs`` of the flags and what
each was measured to do: the sandbox chapter of the threat model. Of the host nothing is mounted but the box's own folder
for its sockets and, for a tool with dependencies, the folder that holds them, both read-only: the tool arrives through the
channel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import Limits
from invocations.sandbox.isolation.seccomp import FRESH_PROFILE_FILE, PROFILE_FILE
from sandbox.browser import DESCRIPTORS, SHARED_MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from invocations.sandbox.base import Profile, SandboxCall

_MIB = 1024 * 1024
_PAGE = 4096
_RUNNER_BYTES = 32 * _MIB  # the runner's own memory; the profile's limit is for the tool
_OWN_PROCESSES = 3  # supervisor, zygote, and for a moment the one between zygote and tool
_PACKAGE_COPIES = 3  # in the frame, in the child, in the file system
_FILE_COPIES = 2  # what a call brings, and what it leaves
_ARTIFACT_COPIES = 5  # the tool's own, joined, as they are read, and in the frame
_USUALLY_LONGEST_S = 300
_SCRATCH_FILES = 4096
_SHARED_BYTES = 256 * _MIB  # of a browser's processes; within the memory of all
_NOTHING_RUNS = "noexec,nosuid,nodev"
_NO_TRACE_OF_READING = "noatime"  # else what one call has read could be told by the next

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

_SECCOMP, _FRESH_SECCOMP = (
    json.dumps(json.loads(file.read_text()), separators=(",", ":")) for file in (PROFILE_FILE, FRESH_PROFILE_FILE)
)


@dataclass(frozen=True, slots=True)
class BoxShape:
    """What a container is made with. Boxes of one shape stand in for each other until they are loaded."""

    image: str  # its content digest
    limits: Limits  # those that the container carries, the others as they are by default
    package_bytes: int = _MIB
    runtime: str = ""
    fresh: bool = False  # calls may have namespaces of their own
    egress: bool = False
    data: bool = False
    browser: bool = False
    dependencies: str = ""
    longest_s: int = 0  # that a call may take

    @property
    def kind(self) -> tuple[str, str]:
        return self.image, self.runtime

    @property
    def memory_bytes(self) -> int:
        return compute_memory_bytes(self.limits, self.package_bytes, data=self.data)

    def __str__(self) -> str:
        kinds = [name for name in ("fresh", "egress", "data", "browser") if getattr(self, name)]
        if self.dependencies:
            kinds.append("dependencies")
        if self.runtime:
            kinds.append(self.runtime)
        return " ".join((f"{self.limits.memory_bytes // _MIB} MB", *kinds))

    def config(self, *, uid: int, labels: Mapping[str, str], folder: Path | None) -> dict[str, Any]:
        return build_container_config(
            image=self.image,
            uid=uid,
            limits=self.limits,
            package_bytes=self.package_bytes,
            labels=labels,
            runtime=self.runtime,
            fresh=self.fresh,
            egress=self.egress,
            data=self.data,
            browser=self.browser,
            folder=folder,
            dependencies=self.dependencies,
        )


def build_box_shape(profile: Profile, call: SandboxCall | None, *, level: str, image: str, runtime: str) -> BoxShape:
    """What a box for this call is made with; without a call, for the usual one."""
    limits, capabilities = profile.limits, profile.capabilities
    data = bool(capabilities.fs)
    carried = Limits(memory_bytes=limits.memory_bytes, processes=limits.processes, tmp_bytes=limits.tmp_bytes)
    carried = replace(carried, artifact_bytes=limits.artifact_bytes)
    if data:
        carried = replace(carried, file_bytes=limits.file_bytes)
    return BoxShape(
        image=image,
        limits=carried,
        package_bytes=_at_least(_MIB, len(call.package) if call else 0),
        runtime=runtime,
        fresh=level == "fresh",
        egress=bool(capabilities.net or capabilities.cidr),
        data=data,
        browser=bool(capabilities.browser),
        dependencies=str(call.dependencies or "") if call else "",
        longest_s=_at_least(_USUALLY_LONGEST_S, limits.wall_ms // 1000),
    )


def _at_least(size: int, needed: int) -> int:
    """``size``, doubled until it is enough: few shapes, so that blank boxes serve many."""
    while size < needed:
        size *= 2
    return size


def compute_memory_bytes(limits: Limits, package_bytes: int, *, data: bool = False) -> int:
    """What a container may hold: the profile's limit is for the tool, the rest for what is there for it."""
    files = _FILE_COPIES * limits.file_bytes if data else 0
    artifacts = _ARTIFACT_COPIES * limits.artifact_bytes
    return limits.memory_bytes + _RUNNER_BYTES + _PACKAGE_COPIES * package_bytes + files + artifacts


def build_container_config(
    *,
    image: str,
    uid: int,
    limits: Limits,
    package_bytes: int,
    labels: Mapping[str, str],
    runtime: str = "",
    fresh: bool = False,
    egress: bool = False,
    data: bool = False,
    browser: bool = False,
    folder: Path | None = None,
    dependencies: str = "",
) -> dict[str, Any]:
    """The request body for one box. The image brings its own command."""
    memory = compute_memory_bytes(limits, package_bytes, data=data)
    private = f"uid={uid},gid={uid},{_NOTHING_RUNS},{_NO_TRACE_OF_READING}"
    # A size of 0 would mean "no limit": a tool without scratch space gets one page that it may not write to.
    scratch_mode = "0700" if limits.tmp_bytes else "0500"
    host: dict[str, Any] = {
        "AutoRemove": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", f"seccomp={_FRESH_SECCOMP if fresh else _SECCOMP}"],
        "ReadonlyRootfs": True,
        "NetworkMode": "none",
        "IpcMode": "none",
        "PidsLimit": limits.processes + _OWN_PROCESSES + egress,  # the relay
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
    if data:
        size = _FILE_COPIES * limits.file_bytes
        host["Tmpfs"]["/data"] = f"size={size},nr_inodes={_SCRATCH_FILES},mode=0700,{private}"
    if browser:
        host["Tmpfs"][SHARED_MEMORY] = f"size={_SHARED_BYTES},mode=0700,{private}"
        host["Ulimits"][0] = {"Name": "nofile", "Soft": DESCRIPTORS, "Hard": DESCRIPTORS}
    if runtime:
        host["Runtime"] = runtime
    mounts = {"/c": str(folder or ""), "/deps": dependencies}
    if any(mounts.values()):
        host["Mounts"] = [
            {"Type": "bind", "Source": source, "Target": target, "ReadOnly": True}
            for target, source in mounts.items()
            if source
        ]
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
