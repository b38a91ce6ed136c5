"""Sandbox hosts of tests: a daemon within this process, reached over a unix socket or under TLS."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invocations.sandbox.boxd.caches import FolderCache, PackageCache
from invocations.sandbox.boxd.daemon import Boxd, BoxHost
from invocations.sandbox.egress import EgressGate
from invocations.sandbox.remote.connection import HostAddress
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.sandbox.wire.certificate_authority import CertificateAuthority
from invocations.sandbox.wire.identities import Identity
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.base import Sandbox

UNIX, TLS = "unix", "tls"
WORKER, OTHER_WORKER, HOST = "worker-1", "worker-2", "localhost"
MIB = 1024 * 1024


class SandboxHost:
    """One daemon, with the sandbox that it has; ``workers`` of it may be many."""

    def __init__(self, sandbox: Sandbox, place: Path, transport: str = UNIX, *, cache_bytes: int = 256 * MIB) -> None:
        self.sandbox, self.place, self.transport = sandbox, place, transport
        self._workers: list[RemoteHost] = []
        self.authority = CertificateAuthority(place / "certificates")
        identity = Identity(self.authority.issue_for_host(HOST), serves=True) if transport == TLS else None
        folders = FolderCache(place / "folders", cache_bytes)
        folders.start()
        is_full = getattr(sandbox, "is_full", lambda: False)
        host = BoxHost(sandbox, PackageCache(cache_bytes), folders, is_full, lambda _: (), identity)
        self.boxd = Boxd(host, workers=[WORKER, OTHER_WORKER])
        if transport == TLS:
            self.url = f"tls://{HOST}:{self.boxd.listen_on_port('127.0.0.1', 0)}"
        else:
            self.boxd.listen_on_socket(place / "boxd.sock")
            self.url = f"unix://{place}/boxd.sock"

    def connect(self, worker: str = WORKER) -> RemoteHost:
        identity = Identity(self.authority.issue_for_worker(worker), serves=False) if self.transport == TLS else None
        self._workers.append(RemoteHost(HostAddress(self.url), identity))
        return self._workers[-1]

    def close(self) -> None:
        for worker in self._workers:
            worker.close()
        self.boxd.stop(drain_s=0)


@contextmanager
def open_host(transport: str = UNIX, sandbox: Sandbox | None = None, **options: Any) -> Iterator[SandboxHost]:
    with tempfile.TemporaryDirectory(prefix="toolhub-boxd-") as place:
        host = SandboxHost(sandbox or docker_sandbox(gate=EgressGate(), **options), Path(place), transport)
        try:
            yield host
        finally:
            host.close()


@contextmanager
def open_remote_sandbox(transport: str = UNIX, **options: Any) -> Iterator[RemoteSandbox]:
    """A worker's sandbox on a host of its own."""
    with open_host(transport, **options) as host:
        sandbox = RemoteSandbox([host.connect()], load_s=60)
        try:
            yield sandbox
        finally:
            sandbox.close()
