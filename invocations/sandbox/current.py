"""Which sandbox does this process use?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from invocations.direct.choosing import DirectOrBox
from invocations.direct.pool import DirectPool
from invocations.sandbox.base import Profile
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.egress import Gate
from invocations.sandbox.examinations import current_examinations
from invocations.sandbox.fake import FakeSandbox
from invocations.sandbox.runtimes import Runtimes
from invocations.sandbox.slots import MIB, Caps
from sandbox.image import image_name
from toolhub.kernel.once import Once

if TYPE_CHECKING:
    from invocations.sandbox.base import Sandbox


def start_sandbox() -> None:
    """In a process that runs tools, before the first of them comes: have boxes ready."""
    sandbox = current_sandbox()
    boxes = sandbox.boxes if isinstance(sandbox, DirectOrBox) else sandbox
    if isinstance(boxes, DockerSandbox):
        boxes.start()


def caps() -> Caps:
    """What the operator allows."""
    memory = settings.TOOLHUB_SANDBOX_MAX_MEMORY_MB * MIB
    return Caps(
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
    return DirectOrBox(
        _boxes(), DirectPool(load_s=settings.TOOLHUB_SANDBOX_LOAD_S), usual=settings.TOOLHUB_SANDBOX_LEVEL
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
                gate=Gate(settings.TOOLHUB_SANDBOX_NETWORKS, ca_file=Path(ca_file) if ca_file else None),
                runtimes=Runtimes(settings.TOOLHUB_SANDBOX_RUNTIMES, current_examinations().of),
                caps=caps(),
                run_dir=Path(settings.TOOLHUB_SANDBOX_RUN_DIR) if settings.TOOLHUB_SANDBOX_RUN_DIR else None,
                usual=Profile(isolation=settings.TOOLHUB_SANDBOX_LEVEL),
            )
        case "fake":
            return FakeSandbox(load_s=settings.TOOLHUB_SANDBOX_LOAD_S)
        case other:
            raise ImproperlyConfigured(f"TOOLHUB_SANDBOX is {other!r}; it must be 'docker' or 'fake'.")
