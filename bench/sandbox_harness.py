"""Sandbox harness: how a measurement runs a small tool in the sandbox, and sees that it got the right answer."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

from bench.figures import CannotMeasure
from invocations.sandbox.base import BoxKey, Limits, Profile, RunStatus, SandboxCall, SandboxUnavailable
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.pool.slots import PoolSlotState
from sandbox.image import image_name
from unitools.packages import zip_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from invocations.sandbox.base import RunOutcome, Sandbox

PYTHON = "/usr/local/bin/sandbox-python"  # see sandbox/image/Dockerfile
TRIVIAL = "def run():\n    return {'sum': sum(range(100))}\n"
RESULT = {"sum": 4950}

_numbers = count()


@dataclass(frozen=True)
class BenchTool:
    """A package with one module, and what it may use."""

    package: bytes
    digest: str
    dependencies: Path | None = None

    @classmethod
    def of(cls, source: str, dependencies: Path | None = None) -> BenchTool:
        memory = io.BytesIO()
        with zipfile.ZipFile(memory, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr("tool/__init__.py", "")
            archive.writestr("tool/main.py", source)
        return cls(memory.getvalue(), "sha256:" + hashlib.sha256(memory.getvalue()).hexdigest(), dependencies)

    @classmethod
    def of_server(cls, listing: bytes, dependencies: Path) -> BenchTool:
        """A tool of a server of others: its package is what was reviewed of the server."""
        package = zip_files([("tool/listing.json", listing)])
        return cls(package, "sha256:" + hashlib.sha256(package).hexdigest(), dependencies)

    def call(self, tenant: str = "acme", arguments: bytes = b"{}", **more: Any) -> SandboxCall:
        name = f"bench-{os.getpid()}-{next(_numbers)}"
        dependencies = self.dependencies.name if self.dependencies else ""
        return SandboxCall(
            name=name,
            package=self.package,
            module="tool.main",
            entry="run",
            arguments=arguments,
            context={"call_id": name},
            key=BoxKey(tenant=tenant, code=self.digest, dependencies=dependencies),
            dependencies=self.dependencies,
            **more,
        )


def get_image_name() -> str:
    return os.environ.get("TOOLHUB_SANDBOX_IMAGE") or image_name()


@contextmanager
def open_sandbox(**options: Any) -> Iterator[DockerSandbox]:
    """A pool of its own, that goes away afterwards."""
    found = DockerSandbox(image=get_image_name(), instance=f"bench-{os.getpid()}-{next(_numbers)}", **options)
    try:
        found.check()
        yield found
    except SandboxUnavailable as error:
        raise CannotMeasure(f"{error} Type:  make engine sandbox-image") from error
    finally:
        found.close()


def make_call(
    where: Sandbox,
    tool: BenchTool,
    level: str,
    *,
    limits: Limits | None = None,
    result: Any = RESULT,
    **more: Any,
) -> RunOutcome:
    """Make a call that must come out right."""
    outcome = where.run(Profile(limits or Limits(), isolation=level), tool.call(**more))
    if outcome.status is not RunStatus.OK or outcome.value != result:
        raise CannotMeasure(f"The sandbox call ended as {outcome.status}: {outcome.error_message} {outcome.value}")
    if outcome.level != level:
        raise CannotMeasure(f"The call ran at the level {outcome.level}, not {level}.")
    return outcome


def weigh_waiting_boxes(where: DockerSandbox) -> list[float]:
    """What each box holds that waits with a tool's code in it, in MB, as the engine says."""
    waiting = [each.box for each in where._pool.slots() if each.state is PoolSlotState.LOADED and each.box is not None]
    return [where._maker.memory_held(box) / 1e6 for box in waiting]
