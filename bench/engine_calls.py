"""Calls on one engine: what a decision and a whole call take. A process for each: what to do comes in lines, what it took goes out.

A call is decided, written down, claimed, run and ended in one thread. Its sandbox answers at once and its broker is silent, so that
what is left is the hub's own work and the database's.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import django

django.setup()  # models can be imported only from here on

from django.db import connection  # noqa: E402

from access.authentication.bearer import resolve_key_principal  # noqa: E402
from bench.worst_case_tenant import switch_everything_on  # noqa: E402
from invocations import calls, services  # noqa: E402
from invocations.calls import CallRequest  # noqa: E402
from invocations.decide import preflight  # noqa: E402
from invocations.queue import outbox  # noqa: E402
from invocations.run import execution, lease_heartbeat  # noqa: E402
from kernel.http.envelopes import RequestEnvelope  # noqa: E402
from tests.support.calls import Bell, ScriptedSandbox  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

TOOL = "sample.tools.echo"
SERVERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE %s"


class EngineCalls:
    def __init__(self, key: str) -> None:
        principal = resolve_key_principal(key)
        assert principal is not None
        self.by = principal
        self._number = 0

    def _call(self) -> CallRequest:
        self._number += 1
        id = f"engine-{os.getpid()}-{self._number}"
        envelope = RequestEnvelope(request_id=id, actor={"type": "agent", "id": "bench"})
        return CallRequest(tool=TOOL, arguments={"text": "x"}, envelope=envelope)

    def preflight(self) -> None:
        verdict, _ = services.preflight_call(self._call(), by=self.by)
        if verdict.problem is not None:
            raise SystemExit(f"The preflight refused: {verdict.problem}")

    def call(self) -> None:
        answered = services.invoke_tool(self._call(), by=self.by)
        if answered.invocation.state != "succeeded":
            raise SystemExit(f"The call ended as {answered.invocation.state}.")


def find_servers() -> list[Path]:
    """Where the kernel keeps the processor's time of the server's processes that work for this one; they are on this machine."""
    with connection.cursor() as cursor:
        cursor.execute(SERVERS, [f"toolhub % {os.getpid()} %"])
        return [Path(f"/proc/{pid}/schedstat") for (pid,) in cursor.fetchall()]


def read_processor_ms(servers: list[Path]) -> float:
    """Of this process and of those together."""
    return time.process_time() * 1000 + sum(int(each.read_text().split()[0]) for each in servers) / 1_000_000


def count_round_trips(work: Callable[[], None]) -> int:
    """How often the server says that it is ready for what comes next, while the work is done once: libpq writes down what it says."""
    connection.ensure_connection()
    pgconn = connection.connection.pgconn  # the pool has this one connection to give
    with tempfile.TemporaryFile() as trace:
        pgconn.trace(trace.fileno())
        work()
        pgconn.untrace()
        trace.seek(0)
        return trace.read().count(b"ReadyForQuery")


def main() -> None:
    measured = EngineCalls(sys.argv[1])
    if "--everything-on" in sys.argv:
        switch_everything_on(measured.by, TOOL)
        return
    bell, sandbox = Bell(), ScriptedSandbox()
    outbox.send_wake_up = bell.ring
    for waking in (calls, services):
        waking.get_waker = lambda: bell  # type: ignore[attr-defined]
    for running in (execution, lease_heartbeat, preflight):
        running.current_sandbox = lambda: sandbox  # type: ignore[attr-defined]
    for line in sys.stdin:
        what, count = line.split()
        work = getattr(measured, what)
        if not int(count):
            print(count_round_trips(work), flush=True)
            continue
        servers = find_servers()
        begun, processor = time.perf_counter(), read_processor_ms(servers)
        for _ in range(int(count)):
            work()
        took, used = (time.perf_counter() - begun) * 1000, read_processor_ms(servers) - processor
        print(json.dumps([took / int(count), used / int(count)]), flush=True)


if __name__ == "__main__":
    main()
