"""Node servers: the cost of a call of a server of npm that stands ready, and of one that is started in its call.

``python -m bench.node_servers ROUNDS`` prints milliseconds as JSON. It is a process of its own, because the server is really fetched
and unpacked by the hub's builder, which needs the settings of a hub. It is called through boxes that are used once. A call with a
secret is one that no server stands ready for, so both are measured of the same server, in turn.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolhub.settings")
django.setup()

from django.conf import settings  # noqa: E402  Django must be set up before models load

from bench.figures import CannotMeasure  # noqa: E402
from bench.sandbox_harness import BenchTool, open_sandbox, weigh_waiting_boxes  # noqa: E402
from invocations.sandbox.base import Limits, Profile, RunStatus  # noqa: E402
from invocations.sandbox.pool.slots import PoolSlotState  # noqa: E402
from registry.dependencies import build_steps  # noqa: E402
from registry.dependencies.failures import CannotBuild  # noqa: E402
from registry.dependencies.pip import ProgressHooks  # noqa: E402
from sandbox.image import image_name  # noqa: E402
from unitools.npm_locks import read_package_lock  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.docker import DockerSandbox

PACKAGE, VERSION = "@modelcontextprotocol/server-everything", "2026.8.31"
START = {"script": "mcp-server-everything", "package": f"npm:{PACKAGE}"}
ASKS = {"tool": "echo", "structured": False}
ARGUMENTS = json.dumps({"message": "well"}).encode()
LIMITS = Limits(wall_ms=20_000)
READY, IN_CALL = f"{PACKAGE}, ready before the call", f"{PACKAGE}, started in the call"
HELD = "MB of the boxes that wait"
_READY_WITHIN_S = 30.0
_LOOK_S = 0.05


def allow_registry() -> None:
    """The builder may ask the registry of npm also where its address is one of this network, as a mirror's is."""
    host = urlsplit(settings.TOOLHUB_NPM_REGISTRY).hostname
    try:
        found = socket.getaddrinfo(host, 443, family=socket.AF_INET, type=socket.SOCK_STREAM)
    except OSError as error:
        raise CannotMeasure(f"The registry of npm is not found: {error}") from error
    settings.TOOLHUB_OUTBOUND_NETWORKS = sorted({f"{each[4][0]}/32" for each in found})


@contextmanager
def install_server() -> Iterator[Path]:
    """The folder that the hub's builder makes of what npm here locks."""
    with tempfile.TemporaryDirectory(prefix="toolhub-bench-npm-") as folder:
        place = Path(folder)
        place.chmod(0o755)
        (place / "package.json").write_text(json.dumps({"private": True, "dependencies": {PACKAGE: VERSION}}))
        command = ["npm", "install", "--package-lock-only", "--ignore-scripts", "--no-audit", "--no-fund"]
        try:
            subprocess.run(command, cwd=place, check=True, capture_output=True)
            settings.TOOLHUB_DEPENDENCY_DIR = str(place / "deps")
            allow_registry()
            lock = read_package_lock((place / "package-lock.json").read_text())
            yield build_steps.build_folder(lock, (), talk=ProgressHooks(lambda _: None, lambda: None))[0]
        except (OSError, subprocess.CalledProcessError, CannotBuild) as error:
            raise CannotMeasure(f"{PACKAGE} could not be installed: {error}") from error


def _call(where: DockerSandbox, tool: BenchTool, how: str) -> float:
    secrets = {} if how == READY else {"NOBODY_READS_IT": "x"}
    call = tool.call(arguments=ARGUMENTS, server=START, asks=ASKS, secrets=secrets, image=image_name(kind="node"))
    begun = time.perf_counter()
    outcome = where.run(Profile(LIMITS), call)
    took_ms = (time.perf_counter() - begun) * 1000
    if outcome.status is not RunStatus.OK:
        raise CannotMeasure(f"The server's call ended as {outcome.status}: {outcome.error_message}")
    return took_ms


def _wait_until_ready(where: DockerSandbox) -> None:
    until = time.monotonic() + _READY_WITHIN_S
    while time.monotonic() < until:
        slots = where._pool.slots()
        if any(slot.idle.for_one_call and slot.state is PoolSlotState.LOADED for slot in slots):
            return
        time.sleep(_LOOK_S)
    raise CannotMeasure("No server got ready before its call.")


def measure_servers(rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each way, in turn; the first round does not count. And the MB of the boxes that wait for a call."""
    with install_server() as place, open_sandbox() as where:
        tool = BenchTool.of("", place)
        found: dict[str, list[float]] = {READY: [], IN_CALL: []}
        for number in range(rounds + 1):
            for how, times in found.items():
                if how == READY and number:
                    _wait_until_ready(where)
                took_ms = _call(where, tool, how)
                if number:
                    times.append(took_ms)
        _call(where, tool, READY)
        _wait_until_ready(where)
        return found | {HELD: weigh_waiting_boxes(where)}


if __name__ == "__main__":
    print(json.dumps(measure_servers(int(sys.argv[1]))))
