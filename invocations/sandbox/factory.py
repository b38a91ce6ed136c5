"""Sandbox factory: the sandbox that this process uses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from invocations.direct_runs.pool import DirectSandbox
from invocations.direct_runs.selection import SelectingSandbox
from invocations.sandbox.box_settings import BoxSettings
from invocations.sandbox.docker import DockerSandbox
from invocations.sandbox.fake import FakeSandbox
from invocations.sandbox.remote.connection import HostAddress
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.sandbox.wire.identities import Identity, IdentityFiles
from kernel.singleton import Once
from sandbox.image import image_name

if TYPE_CHECKING:
    from invocations.sandbox.base import Sandbox
    from invocations.sandbox.isolation.check_results import IsolationChecks


def start_sandbox() -> None:
    """In a process that runs tools, before the first of them comes: have boxes ready."""
    boxes = find_boxes()
    if isinstance(boxes, DockerSandbox):
        boxes.start()


def find_boxes() -> Sandbox:
    """Where the tools run that nobody vouches for."""
    sandbox = current_sandbox()
    return sandbox.boxes if isinstance(sandbox, SelectingSandbox) else sandbox


@Once
def current_sandbox() -> Sandbox:
    """By ``TOOLHUB_DIRECT``: whether tools that an operator trusts run beside it, as plain processes."""
    if not settings.TOOLHUB_DIRECT:
        return _boxes()
    return SelectingSandbox(
        _boxes(), DirectSandbox(load_s=settings.TOOLHUB_SANDBOX_LOAD_S), usual=settings.TOOLHUB_SANDBOX_LEVEL
    )


@Once
def current_isolation_checks() -> IsolationChecks:
    """Of the engine that this process has."""
    return read_box_settings().build_checks()


def read_box_settings() -> BoxSettings:
    """What the operator has set, as the hub's settings have it."""
    ca_file, run_dir = settings.TOOLHUB_SANDBOX_CA_FILE, settings.TOOLHUB_SANDBOX_RUN_DIR
    return BoxSettings(
        image=settings.TOOLHUB_SANDBOX_IMAGE or image_name(),
        instance=settings.TOOLHUB_INSTANCE,
        data_dir=settings.TOOLHUB_DATA_DIR,
        engine_url=settings.TOOLHUB_DOCKER_URL or None,
        runtimes=settings.TOOLHUB_SANDBOX_RUNTIMES,
        level=settings.TOOLHUB_SANDBOX_LEVEL,
        networks=settings.TOOLHUB_SANDBOX_NETWORKS,
        ca_file=Path(ca_file) if ca_file else None,
        run_dir=Path(run_dir) if run_dir else None,
        max_boxes=settings.TOOLHUB_SANDBOX_MAX_BOXES,
        max_memory_mb=settings.TOOLHUB_SANDBOX_MAX_MEMORY_MB,
        ready=settings.TOOLHUB_SANDBOX_READY,
        idle_s=settings.TOOLHUB_SANDBOX_IDLE_S,
        load_s=settings.TOOLHUB_SANDBOX_LOAD_S,
    )


def _boxes() -> Sandbox:
    """On the hosts of ``TOOLHUB_SANDBOX_HOSTS``; where none is named, by ``TOOLHUB_SANDBOX``: ``docker``, or ``fake`` for tests that
    need no walls.
    """
    match settings.TOOLHUB_SANDBOX:
        case "docker" if settings.TOOLHUB_SANDBOX_HOSTS:
            return _hosts()
        case "docker":
            return read_box_settings().build_sandbox(current_isolation_checks())
        case "fake":
            return FakeSandbox(load_s=settings.TOOLHUB_SANDBOX_LOAD_S)
        case other:
            raise ImproperlyConfigured(f"TOOLHUB_SANDBOX is {other!r}; it must be 'docker' or 'fake'.")


def _hosts() -> RemoteSandbox:
    named = [
        settings.TOOLHUB_SANDBOX_TLS_CA,
        settings.TOOLHUB_SANDBOX_TLS_CERTIFICATE,
        settings.TOOLHUB_SANDBOX_TLS_KEY,
    ]
    identity = Identity(IdentityFiles(*map(Path, named)), serves=False) if all(named) else None
    hosts = [RemoteHost(HostAddress(text), identity) for text in settings.TOOLHUB_SANDBOX_HOSTS]
    return RemoteSandbox(hosts, load_s=settings.TOOLHUB_SANDBOX_LOAD_S)
