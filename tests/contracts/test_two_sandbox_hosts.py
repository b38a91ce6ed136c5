"""Two sandbox hosts: what becomes of the calls of a worker without an engine when one of its hosts dies?"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.docker import INSTANCE
from tests.support.background_runs import wait_for
from tests.support.host_namespaces import ROOT, open_machines

if TYPE_CHECKING:
    from pathlib import Path

    from invocations.sandbox.engine import Engine

EACH = 8
BOXES_GONE_WITHIN_S = 180.0  # as in tests/crash: a busy engine tells of an end late


@pytest.mark.long
@pytest.mark.req("OPS-1")
def test_when_a_host_dies_only_its_calls_are_lost_and_no_box_is_left(engine: Engine, short_path: Path) -> None:
    with open_machines(short_path) as machines:
        dies, lives = machines.hosts
        worker = subprocess.Popen(
            machines.list_worker_command(sys.executable, "-m", "tests.support.remote_worker", str(EACH)),
            cwd=ROOT,
            env=machines.build_worker_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert worker.stdin is not None
        assert worker.stdout is not None
        with worker:
            said = json.loads(worker.stdout.readline())
            begun = sorted(worker.stdout.readline().strip() for _ in range(2 * EACH))
            found_boxes = engine.find({INSTANCE: dies.instance})
            boxes = {box["Id"] for box in found_boxes}
            busy = {box["Id"] for box in found_boxes if box["State"] == "running"}

            dies.processes[0].send_signal(signal.SIGKILL)
            dies.processes[0].wait()
            wait_for(lambda: not any(map(engine.exists, busy)), seconds=BOXES_GONE_WITHIN_S)
            worker.stdin.write(f"{dies.url}\n")
            worker.stdin.flush()
            found = json.loads(worker.stdout.readline())
        assert worker.returncode == 0

        assert said["engine"] == ""  # the worker's machine has none that it could ask for containers
        assert begun == sorted([dies.url] * EACH + [lives.url] * EACH)
        assert sorted(map(tuple, found["ends"])) == sorted(
            [(dies.url, "lost")] * EACH + [(lives.url, "cancelled")] * EACH
        )
        assert found["after"] == 1

        dies.start()  # as whoever looks after the daemon would; it ends what was made and not yet started
        wait_for(lambda: not any(map(engine.exists, boxes)), seconds=BOXES_GONE_WITHIN_S)
        for host in machines.hosts:
            host.processes[-1].terminate()
            host.processes[-1].wait()
            assert engine.find({INSTANCE: host.instance}) == []
