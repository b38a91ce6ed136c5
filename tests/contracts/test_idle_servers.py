"""Idle servers: of many servers that were called and are called no more, does any process stay?"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, RunStatus
from invocations.sandbox.pool.slots import MIB, PoolCaps, PoolSlotState
from tests.support import mcp_servers, npm_packages
from tests.support.background_runs import wait_for
from tests.support.sandboxes import docker_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invocations.sandbox.docker import DockerSandbox

LIMITS = Limits(wall_ms=20_000)
SERVERS, OF_PYTHON = 50, 25
IDLE_S = 120.0


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    """Room for all of them at once, so that none goes to make room."""
    found = docker_sandbox(caps=PoolCaps(boxes=3 * SERVERS, memory_bytes=3 * SERVERS * 512 * MIB))
    yield found
    found.close()


def list_boxes(sandbox: DockerSandbox) -> set[str]:
    """Those in which a server is kept, or stands ready."""
    slots = sandbox._pool.slots()
    return {slot.box.id for slot in slots if slot.box is not None and slot.state is PoolSlotState.LOADED}


def list_processes(boxes: set[str]) -> dict[str, str]:
    """Of this machine: the number of each, and when it began."""
    numbers: list[str] = []
    for box in boxes:
        command = ["docker", "top", box, "-eo", "pid"]
        numbers += subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1:]
    return {each: begun for each in numbers if (begun := _begin_of(each))}


def list_alive(processes: dict[str, str]) -> list[str]:
    """The kernel is asked, since the engine says nothing of a box that it has forgotten."""
    return [number for number, begun in processes.items() if _begin_of(number) == begun]


def _begin_of(number: str) -> str:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def list_containers() -> set[str]:
    command = ["docker", "ps", "-aq", "--no-trunc"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.long  # fifty boxes
@pytest.mark.req("BRING-2")
def test_of_fifty_servers_no_process_is_left_after_two_minutes_without_a_call(
    sandbox: DockerSandbox, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("idle")
    place.chmod(0o755)
    python = mcp_servers.lay_out_server(place / "python")
    node = npm_packages.lay_out_server(place / "node")
    begun = time.monotonic()
    sandbox._pool._clock = lambda: begun  # it stands until all of them are there, however slow the host is
    for number in range(OF_PYTHON):
        outcome = mcp_servers.ask_server(sandbox, python, "say", limits=LIMITS, tenant=f"tenant-{number}", text="x")
        assert outcome.status is RunStatus.OK, outcome
    for tenant in range(2 * SERVERS):  # none is begun ahead of a call while the pool has other work
        if len(list_boxes(sandbox)) == SERVERS:
            break
        outcome = npm_packages.ask_server(sandbox, node, "say", limits=LIMITS, tenant=f"of node {tenant}", text="x")
        assert outcome.status is RunStatus.OK, outcome
        wait_for(lambda: not sandbox._standby._coming, 60)
    kept = list_boxes(sandbox)
    assert len(kept) == SERVERS
    processes = list_processes(kept)
    assert len(list_alive(processes)) > SERVERS

    sandbox._pool._clock = lambda: begun + IDLE_S
    sandbox._pool.tick()

    wait_for(lambda: not list_alive(processes), 60)
    wait_for(lambda: not kept & list_containers(), 60)
    assert list_boxes(sandbox) == set()
