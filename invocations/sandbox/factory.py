"""Sandbox factory: the sandbox that this process uses."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from invocations.direct_runs.pool import DirectSandbox
from invocations.direct_runs.selection import SelectingSandbox
from invocations.sandbox.base import Profile
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.fake import FakeSandbox
from invocations.sandbox.isolation.check_results import current_isolation_checks
from invocations.sandbox.isolation.runtimes import Runtimes
from invocations.sandbox.pool.slots import MIB, PoolCaps
from kernel.singleton import Once
from sandbox.image import image_name

if TYPE_CHECKING:
    from invocations.sandbox.base import Sandbox


def start_sandbox() -> None:
    """In a process that runs tools, before the first of them comes: have boxes ready."""
    sandbox = current_sandbox()
    boxes = sandbox.boxes if isinstance(sandbox, SelectingSandbox) else sandbox
    if isinstance(boxes, DockerSandbox):
        boxes.start()


def read_pool_caps() -> PoolCaps:
    """What the operator allows."""
    memory = settings.TOOLHUB_SANDBOX_MAX_MEMORY_MB * MIB
    return PoolCaps(
        boxes=settings.TOOLHUB_SANDBOX_MAX_BOXES,
        memory_bytes=memory or os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2,
        ready=settings.TOOLHUB_SANDBOX_READY,
        idle_s=settings.TOOLHUB_SANDBOX_IDLE_S,
        load_s=settings.TOOLHUB_SANDBOX_LOAD_S,
    )


@Once
def current_sandbox() -> Sandbox:
    """By ``TOOLHUB_DIRECT``: whether tools that an operator trusts run beside it, as plain processes."""
    if not settings.TOOLHUB_DIRECT:
        return _boxes()
    return SelectingSandbox(
        _boxes(), DirectSandbox(load_s=settings.TOOLHUB_SANDBOX_LOAD_S), usual=settings.TOOLHUB_SANDBOX_LEVEL
    )


def _boxes() -> Sandbox:
    """By ``TOOLHUB_SANDBOX``: ``docker``, or ``fake`` for tests that need no walls."""
    ca_file = settings.TOOLHUB_SANDBOX_CA_FILE
    match settings.TOOLHUB_SANDBOX:
        case "docker":
            return DockerSandbox(
                image=settings.TOOLHUB_SANDBOX_IMAGE or image_name(),
                instance=settings.TOOLHUB_INSTANCE,
                engine_url=settings.TOOLHUB_DOCKER_URL or None,
                gate=EgressGate(settings.TOOLHUB_SANDBOX_NETWORKS, ca_file=Path(ca_file) if ca_file else None),
                runtimes=Runtimes(settings.TOOLHUB_SANDBOX_RUNTIMES, current_isolation_checks().of),
                caps=read_pool_caps(),
                run_dir=Path(settings.TOOLHUB_SANDBOX_RUN_DIR) if settings.TOOLHUB_SANDBOX_RUN_DIR else None,
                usual=Profile(isolation=settings.TOOLHUB_SANDBOX_LEVEL),
            )
        case "fake":
            return FakeSandbox(load_s=settings.TOOLHUB_SANDBOX_LOAD_S)
        case other:
            raise ImproperlyConfigured(f"TOOLHUB_SANDBOX is {other!r}; it must be 'docker' or 'fake'.")
