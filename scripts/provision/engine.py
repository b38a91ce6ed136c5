"""Engine: whether there is a Docker engine, and how one is started if not.

There is one engine per machine. It is used when it answers, started when it does not, and never stopped by us. Two
`make` at once, or a crash that left pid files behind, must not lead to a second one: a second engine tears down the
network of the first.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.provision import packages
from scripts.provision.console import ROOT, SetupError, announce_step, as_root, print_line, query_program, run_program
from scripts.provision.processes import only_one, started_at

if TYPE_CHECKING:
    from collections.abc import Iterator

PURPOSE = "The Docker engine, which runs the sandboxes,"
SOCKET = Path("/var/run/docker.sock")
# (pid file, name of the process that may own it)
PID_FILES = (
    (Path("/var/run/docker.pid"), "dockerd"),
    (Path("/var/run/docker/containerd/containerd.pid"), "containerd"),
)
LOG = ROOT / "var" / "log" / "dockerd.log"
START_S = 60.0


def is_answering() -> bool:
    return bool((query_program(["docker", "version", "--format", "{{.Server.Version}}"], timeout_s=10) or "").strip())


def ensure_engine() -> None:
    """Return when an engine answers."""
    if is_answering():
        return
    if host := os.environ.get("DOCKER_HOST"):
        raise SetupError(
            f"No Docker engine answers at DOCKER_HOST={host}.",
            "Start that engine, or unset DOCKER_HOST to use one on this machine.",
        )
    packages.ensure_packages(*needed_packages(), purpose=PURPOSE)
    if shutil.which("docker") is None:  # since Debian 13 the client is a package of its own
        packages.ensure_packages("docker-cli", purpose=PURPOSE)
    with only_one("docker-engine"):
        if is_answering():
            return
        _check_permission()
        if pids := find_processes("dockerd"):
            _wait(pids[0])
            return
        with announce_step("starting the Docker engine", "Docker engine started"):
            _start()


def needed_packages() -> list[str]:
    """What must be installed before :func:`ensure_engine` can do the rest."""
    return [] if (shutil.which("docker") and shutil.which("dockerd")) or is_answering() else ["docker.io"]


def find_image_id(name: str) -> str:
    """Empty when there is no such image."""
    return (query_program(["docker", "image", "inspect", "--format", "{{.Id}}", name]) or "").strip()


@contextlib.contextmanager
def replace_image(image: str) -> Iterator[None]:
    """While the block makes an image anew: the one that had the name goes away afterwards, unless somebody uses it."""
    before = find_image_id(image)
    yield
    if before not in ("", find_image_id(image)):
        query_program(["docker", "image", "rm", before], timeout_s=60)


def find_processes(name: str) -> list[int]:
    """The ids of the running processes of this name. One that ended and was not waited for (a container's first process may wait for
    nobody) does not run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "comm").read_text().strip() == name and started_at(int(entry.name)):
                    found.append(int(entry.name))
    return sorted(found)


def _check_permission() -> None:
    if SOCKET.exists() and not os.access(SOCKET, os.W_OK) and find_processes("dockerd"):
        raise SetupError(
            f"A Docker engine runs, but this user may not speak to it ({SOCKET}).",
            "Type:  sudo usermod -aG docker $USER\nlog out and in (or type `newgrp docker`), and run this again.",
        )


def _wait(pid: int) -> None:
    """An engine runs already: give it the time to come up, and never start another."""
    with announce_step(f"waiting for the Docker engine (process {pid})", "Docker engine answers"):
        deadline = time.monotonic() + START_S
        while not is_answering():
            if time.monotonic() > deadline:
                raise SetupError(
                    f"A Docker engine runs (process {pid}) but has not answered for {START_S:.0f} s.",
                    f"Its log: journalctl -u docker, or {LOG}\nIf it hangs:  sudo kill {pid}\nand run this again.",
                )
            time.sleep(0.3)


def _start() -> None:
    if Path("/run/systemd/system").is_dir():
        run_program(
            as_root(["systemctl", "start", "docker"], purpose="Starting the Docker engine"),
            remedy="Type:  journalctl -u docker -n 50",
        )
        started = None
    else:
        _remove_leftovers()
        LOG.parent.mkdir(parents=True, exist_ok=True)
        with LOG.open("ab") as log:
            started = subprocess.Popen(
                as_root(["dockerd"], purpose="Starting the Docker engine", by_hand="make engine"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # it outlives this command and does not see its Ctrl-C
                cwd="/",
            )
    deadline = time.monotonic() + START_S
    while not is_answering():
        _check_permission()
        if started is not None and started.poll() is not None:
            raise SetupError(f"The Docker engine ended at once:\n{_tail()}", f"All of it is in {LOG}.")
        if time.monotonic() > deadline:
            raise SetupError(
                f"The Docker engine did not answer within {START_S:.0f} s:\n{_tail()}", f"All of it is in {LOG}."
            )
        time.sleep(0.2)


def _tail() -> str:
    lines = LOG.read_text(errors="replace").splitlines()[-10:] if LOG.exists() else []
    return "\n".join(f"    {line}" for line in lines)


def _remove_leftovers() -> None:
    """A pid file whose number now belongs to another program stops an engine from starting."""
    for path, owner in PID_FILES:
        if path.exists() and not find_processes(owner):
            print_line(f"           removing {path}, left by an engine that is gone")
            run_program(as_root(["rm", "-f", str(path)], purpose=PURPOSE))
    if SOCKET.exists() and not socket_is_held(SOCKET):
        run_program(as_root(["rm", "-f", str(SOCKET)], purpose=PURPOSE))


def socket_is_held(path: Path) -> bool:
    """Whether some process listens on this unix socket."""
    names = {str(path), str(path.parent.resolve() / path.name)}
    with contextlib.suppress(OSError):
        return any(line.split()[-1] in names for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return True
