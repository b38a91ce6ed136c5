"""Box settings: what the operator of a host says about its boxes, and the sandbox and the checks that are made by it.

The same for a worker that has an engine and for the daemon of a sandbox host, which knows no Django.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from invocations.sandbox.base import Profile
from invocations.sandbox.boxes.run_directory import find_default_run_dir
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.engine import Engine
from invocations.sandbox.isolation.check_results import IsolationChecks
from invocations.sandbox.isolation.runtimes import Runtimes
from invocations.sandbox.pool.slots import MIB, PoolCaps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from invocations.sandbox.base import Sandbox


@dataclass(frozen=True, slots=True)
class BoxSettings:
    """``max_memory_mb``: 0 for half of the machine's. ``run_dir``: None for where the system puts such things."""

    image: str
    instance: str
    data_dir: Path
    engine_url: str | None = None
    runtimes: Mapping[str, str] = field(default_factory=dict)
    level: str = "fresh"
    networks: Sequence[str] = ()
    ca_file: Path | None = None
    run_dir: Path | None = None
    max_boxes: int = 32
    max_memory_mb: int = 0
    ready: int = 1
    idle_s: float = 300.0
    load_s: float = 60.0

    def build_caps(self) -> PoolCaps:
        return PoolCaps(
            boxes=self.max_boxes,
            memory_bytes=self.max_memory_mb * MIB or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2,
            ready=self.ready,
            idle_s=self.idle_s,
            load_s=self.load_s,
        )

    def build_checks(self) -> IsolationChecks:
        """What is known about the runtimes of this host."""
        run_dir = self.run_dir or find_default_run_dir()

        def make_sandbox(runtime: str) -> Sandbox:
            return DockerSandbox(
                self.image, self.instance, engine_url=self.engine_url, runtime=runtime, run_dir=run_dir
            )

        return IsolationChecks(
            Engine(self.engine_url),
            image=self.image,
            make_sandbox=make_sandbox,
            run_dir=run_dir,
            kept_in=self.data_dir / "sandbox-walls.json",
        )

    def build_sandbox(self, checks: IsolationChecks) -> DockerSandbox:
        return DockerSandbox(
            image=self.image,
            instance=self.instance,
            engine_url=self.engine_url,
            gate=EgressGate(self.networks, ca_file=self.ca_file),
            runtimes=Runtimes(self.runtimes, checks.of),
            caps=self.build_caps(),
            run_dir=self.run_dir,
            usual=Profile(isolation=self.level),
        )
