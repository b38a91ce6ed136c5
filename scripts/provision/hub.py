"""Hub: how `make run` turns a checkout into a running hub.

Everything is checked or made in the order in which it is needed; what is there already costs almost nothing. The last
step replaces this process with the hub's, so a Ctrl-C goes straight to it.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path
from typing import NoReturn

from scripts.provision import engine, image, packages, venv
from scripts.provision.console import ROOT, SetupError, print_line
from scripts.provision.processes import find_listener, is_free

DEFAULT_BIND = "127.0.0.1:8000"
PORTS_TRIED = 50


def run_hub() -> NoReturn:
    begun = time.monotonic()
    env = dict(os.environ)
    data = Path(env.setdefault("TOOLHUB_DATA_DIR", str(ROOT / "var"))).absolute()
    lock = _claim(data)
    env["TOOLHUB_BIND"] = _bind(env.get("TOOLHUB_BIND", ""))
    os.write(lock, f", http://{env['TOOLHUB_BIND']}".encode())
    packages.ensure_packages(*venv.needed_packages(), *engine.needed_packages(), purpose="Running the hub")
    python = venv.ensure_venv()
    if not env.get("TOOLHUB_SANDBOX_IMAGE"):
        env["TOOLHUB_SANDBOX_IMAGE"] = image.ensure_image()
    print_line(f"[{time.monotonic() - begun:6.1f} s] everything is there; starting the hub")
    os.execve(python, [str(python), "scripts/start_hub.py"], env)


def _claim(data: Path) -> int:
    """One hub for a data directory. The lock is inherited by the hub and ends with it, however it ends."""
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(data / "hub.lock", os.O_RDWR | os.O_CREAT, 0o600)
    os.set_inheritable(handle, True)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        says = os.read(handle, 200).decode()
        os.close(handle)
        raise SetupError(
            f"A hub already runs on the data in {data} ({says}).",
            "End it with Ctrl-C in its own window, or start a second one on other data:\n"
            "    TOOLHUB_DATA_DIR=/tmp/second-hub make run",
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()}".encode())
    return handle


def _bind(wanted: str) -> str:
    """The address to listen on: the one asked for, or the next free port, and say so."""
    host, _, port_text = (wanted or DEFAULT_BIND).rpartition(":")
    if not port_text.isdigit() or not host:
        raise SetupError(
            f"TOOLHUB_BIND={wanted} is not an address and a port.",
            f"For example:  TOOLHUB_BIND={DEFAULT_BIND} make run",
        )
    port = int(port_text)
    bare = host.strip("[]")
    if is_free(bare, port):
        return f"{host}:{port}"
    for other in range(port + 1, min(port + PORTS_TRIED, 65536)):
        if is_free(bare, other):
            print_line(f"           port {port} is busy (used by {find_listener(port)}): starting on {other} instead.")
            print_line("           TOOLHUB_BIND chooses another, for example:  TOOLHUB_BIND=127.0.0.1:9000 make run")
            return f"{host}:{other}"
    raise SetupError(
        f"{host}:{port} cannot be used (port {port}: {find_listener(port)}), nor any of the next {PORTS_TRIED} ports.",
        "Choose another:  TOOLHUB_BIND=127.0.0.1:9000 make run",
    )
