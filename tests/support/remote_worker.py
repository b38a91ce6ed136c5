"""Remote worker: a process that calls tools on the sandbox hosts that its environment names, and prints what comes of it.

``python -m tests.support.remote_worker CALLS``: on each host so many calls run at once. It prints a line for each that has begun;
told which host has died, it waits until a call on each other host has gone on, ends those, and prints all outcomes.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from invocations.sandbox.base import BoxKey, Limits, Profile, RunEvent, RunOutcome, SandboxCall
from invocations.sandbox.engine import Engine, EngineError
from invocations.sandbox.remote.connection import HostAddress
from invocations.sandbox.remote.host import RemoteHost
from invocations.sandbox.remote.sandbox import RemoteSandbox, rank_hosts
from invocations.sandbox.wire.identities import Identity, IdentityFiles
from tests.support.sandboxes import call_of, package_of
from toolhub import variables

MIB = 1024 * 1024
GOES_ON = """
import time
from unitools import runtime
def run():
    for _ in range(2400):
        runtime.progress(0.5, "here")
        time.sleep(0.1)
"""


class HeldCall:
    """One call, in a thread of its own."""

    def __init__(self, sandbox: RemoteSandbox, call: SandboxCall, host: str) -> None:
        self.call, self.host = call, host
        self.outcome: RunOutcome | None = None
        self.heard = threading.Event()
        self._sandbox = sandbox
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        profile = Profile(Limits(wall_ms=300_000, memory_bytes=48 * MIB), isolation="shared")
        self.outcome = self._sandbox.run(profile, self.call, self._hear)

    def _hear(self, _: RunEvent) -> None:
        self.heard.set()


def main(each: int) -> None:
    files = IdentityFiles(
        Path(variables.TOOLHUB_SANDBOX_TLS_CA),
        Path(variables.TOOLHUB_SANDBOX_TLS_CERTIFICATE),
        Path(variables.TOOLHUB_SANDBOX_TLS_KEY),
    )
    hosts = [RemoteHost(HostAddress(url), Identity(files, serves=False)) for url in variables.TOOLHUB_SANDBOX_HOSTS]
    sandbox = RemoteSandbox(hosts, load_s=60)
    print(json.dumps({"engine": describe_engine(), "hosts": sandbox.check()}), flush=True)
    with TemporaryDirectory() as place:
        package = package_of(Path(place), main=GOES_ON)
        held = [HeldCall(sandbox, call, host) for call, host in spread_calls(package, hosts, each)]
        for call in held:
            assert call.heard.wait(120), call.outcome
            print(call.host, flush=True)
        dead = sys.stdin.readline().strip()
        for call in held:
            if call.host == dead:
                call.thread.join(60)
        for call in held:
            if call.host != dead:
                call.heard.clear()
                assert call.heard.wait(60), call.outcome
                sandbox.kill(call.call.name)
                call.thread.join(60)
        after = sandbox.run(Profile(isolation="shared"), call_of(package_of(Path(place), main="def run(): return 1")))
    ends = [[call.host, str(call.outcome and call.outcome.status)] for call in held]
    print(json.dumps({"ends": ends, "after": after.value}), flush=True)
    sandbox.close()


def describe_engine() -> str:
    """What this machine's engine says; empty when there is none."""
    engine = Engine()
    try:
        return str(engine.version())
    except EngineError:
        return ""
    finally:
        engine.close()


def spread_calls(package: bytes, hosts: list[RemoteHost], each: int) -> list[tuple[SandboxCall, str]]:
    """So many whose first choice each host is, every one with a box of its own."""
    found: list[tuple[SandboxCall, str]] = []
    count: Counter[str] = Counter()
    number = 0
    while len(found) < each * len(hosts):
        number += 1
        call = replace(call_of(package), key=BoxKey(f"tenant-{number}", "sha256:code"))
        first = str(rank_hosts(hosts, call)[0])
        if count[first] < each:
            count[first] += 1
            found.append((call, first))
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]))
