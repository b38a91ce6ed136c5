"""Host namespaces: sandbox hosts and a worker on machines of their own, as far as the network can tell.

Each host has a network namespace with one link, to the worker's; the worker's machine has no engine: its socket is hidden there.
Needs root, as the engine does.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from invocations.sandbox.wire.certificate_authority import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PORT = 8443
WORKER = "worker-1"
# The engine's socket is what a worker's machine does not have.
_HIDE = 'for each in /run/docker.sock /var/run/docker.sock; do [ -e "$each" ] && mount --bind /dev/null "$each"; done; exec "$@"'


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    assert done.returncode == 0, f"`ip {' '.join(words)}` failed: {done.stderr.strip()} It needs root and iproute2."


@dataclass
class HostMachine:
    """A machine with an engine, and the daemon on it. ``address``: where the worker's machine finds it."""

    namespace: str
    address: str
    instance: str
    environment: dict[str, str]
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"tls://{self.address}:{PORT}"

    def start(self) -> subprocess.Popen[str]:
        """Until it answers."""
        command = ["ip", "netns", "exec", self.namespace, sys.executable, "-m", "toolhub.boxd"]
        daemon = subprocess.Popen(command, cwd=ROOT, env=self.environment, stderr=subprocess.PIPE, text=True)
        self.processes.append(daemon)
        assert daemon.stderr is not None
        said = []
        while "Answers under TLS" not in (line := daemon.stderr.readline()):
            said.append(line)
            assert daemon.poll() is None, "".join(said)
        return daemon

    def stop(self) -> None:
        for daemon in self.processes:
            daemon.kill()
            daemon.wait()
            if daemon.stderr is not None:
                daemon.stderr.close()


@dataclass
class Machines:
    """``worker``: the namespace of the machine without an engine."""

    hosts: list[HostMachine]
    worker: str
    authority: CertificateAuthority

    def list_worker_command(self, *command: str) -> list[str]:
        """What runs this command on the worker's machine."""
        return ["ip", "netns", "exec", self.worker, "unshare", "--mount", "sh", "-c", _HIDE, "sh", *command]

    def build_worker_environment(self) -> dict[str, str]:
        files = self.authority.issue_for_worker(WORKER)
        return _settings(
            TOOLHUB_SANDBOX_HOSTS=",".join(host.url for host in self.hosts),
            TOOLHUB_SANDBOX_TLS_CA=str(files.authority),
            TOOLHUB_SANDBOX_TLS_CERTIFICATE=str(files.certificate),
            TOOLHUB_SANDBOX_TLS_KEY=str(files.key),
        )


def _settings(**own: str) -> dict[str, str]:
    """Of this environment only what is no setting of the hub, and the image."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TOOLHUB_")}
    image = os.environ.get("TOOLHUB_SANDBOX_IMAGE", "")
    return kept | {"TOOLHUB_ENV_FILE": "", "TOOLHUB_SANDBOX_IMAGE": image} | own


@contextmanager
def open_machines(place: Path, *, hosts: int = 2) -> Iterator[Machines]:
    """So many hosts, whose daemons answer, and a worker's machine."""
    mark = secrets.token_hex(2)
    authority = CertificateAuthority(place / "certificates")
    worker = f"th{mark}w"
    machines = Machines([], worker, authority)
    with ExitStack() as stack:
        _ip("netns", "add", worker)
        stack.callback(_ip, "netns", "del", worker)
        _ip("-n", worker, "link", "set", "lo", "up")
        for number in range(hosts):
            machines.hosts.append(_open_machine(stack, place, authority, worker, f"th{mark}{number}", number))
        for host in machines.hosts:
            host.start()
        yield machines


def _open_machine(
    stack: ExitStack, place: Path, authority: CertificateAuthority, worker: str, name: str, number: int
) -> HostMachine:
    near, far = f"10.77.{number}.1", f"10.77.{number}.2"
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    _ip("link", "add", f"{name}h", "netns", name, "type", "veth", "peer", "name", f"{name}w", "netns", worker)
    for namespace, link, address in ((name, f"{name}h", far), (worker, f"{name}w", near)):
        _ip("-n", namespace, "addr", "add", f"{address}/30", "dev", link)
        _ip("-n", namespace, "link", "set", link, "up")
    _ip("-n", name, "link", "set", "lo", "up")
    files = authority.issue_for_host(far)
    instance = f"test-{name}"
    environment = _settings(
        TOOLHUB_BOXD_BIND=f"{far}:{PORT}",
        TOOLHUB_BOXD_WORKERS=WORKER,
        TOOLHUB_DATA_DIR=str(place / name),
        TOOLHUB_SANDBOX_RUN_DIR=str(place / f"r{number}"),
        TOOLHUB_INSTANCE=instance,
        TOOLHUB_SANDBOX_TLS_CA=str(files.authority),
        TOOLHUB_SANDBOX_TLS_CERTIFICATE=str(files.certificate),
        TOOLHUB_SANDBOX_TLS_KEY=str(files.key),
    )
    host = HostMachine(name, far, instance, environment)
    stack.callback(host.stop)
    return host
