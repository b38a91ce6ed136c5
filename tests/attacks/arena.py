"""The arena: where does an attack take place, and how is it told whether it was contained?

An arena is a pool at one level of isolation, with a tenant who means harm and one who does not. Every attack is followed
by an innocent call of the same tool of the same tenant, which comes to the same box where that has survived, and by one
of the other tenant. Both must be right, and must find their process as the first call of all has found it.
"""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invocations.sandbox.base import BoxKey, Limits, Profile, RunEvent, RunOutcome, RunStatus, Sandbox, SandboxCall
from invocations.sandbox.docker import INSTANCE
from invocations.sandbox.pool.slots import PoolCaps
from invocations.sandbox.remote.sandbox import RemoteSandbox
from tests.attacks.catalogue import USUAL, Attack
from tests.support.sandbox_hosts import open_host
from tests.support.sandboxes import call_of, docker_sandbox
from unitools.capabilities import Capabilities
from unitools.packages import build_zip

if TYPE_CHECKING:
    from invocations.sandbox.engine import Engine

HOSTILE = build_zip(Path(__file__).with_name("hostile"))
ACME, OTHER = "acme", "other"
_PATIENCE_S = 30.0
LOAD_S = 3.0  # what a hostile import may take beside the time of its tool
_LATE_MS = 15_000  # who is killed ends with the low priority that it had; how soon is measured by the benchmark
_NUMBERS = 1_000


class Arena:
    """``transport``: how the calls come to the boxes; empty: from the same process."""

    def __init__(
        self, level: str, *, capabilities: Capabilities | None = None, transport: str = "", **options: Any
    ) -> None:
        self.level = level
        boxes = docker_sandbox(**{"caps": PoolCaps(load_s=LOAD_S), **options})
        self._stack = ExitStack()
        self._stack.callback(boxes.close)
        self.sandbox: Sandbox = boxes
        if transport:
            host = self._stack.enter_context(open_host(transport, boxes))
            self.sandbox = RemoteSandbox([host.connect()], load_s=LOAD_S)
            self._stack.callback(self.sandbox.close)
        self._capabilities = capabilities or Capabilities()
        self.instance = boxes._instance
        self._worlds: dict[Limits, Any] = {}
        self._boxes: dict[str, set[str]] = {ACME: set(), OTHER: set()}

    def run(
        self, name: str, *, tenant: str = ACME, limits: Limits = USUAL, package: bytes = HOSTILE, **arguments: Any
    ) -> RunOutcome:
        """``name`` is ``module.function`` of the package, whose top folder is ``hostile``."""
        module, _, function = name.rpartition(".")
        call = call_of(package, module=f"hostile.{module}", entry=function, **arguments)
        return self.do(call, tenant=tenant, limits=limits)

    def do(self, call: SandboxCall, *, tenant: str = ACME, limits: Limits = USUAL) -> RunOutcome:
        canary = new_canary()
        key = BoxKey(tenant=tenant, code="sha256:" + hashlib.sha256(call.package).hexdigest())
        call = replace(call, key=key, config={"canary": canary}, secrets={"CANARY": canary})
        events: list[RunEvent] = []
        outcome = self.sandbox.run(Profile(limits, self._capabilities, isolation=self.level), call, events.append)
        check_events(events, limits)
        if outcome.box:
            self._boxes[tenant].add(outcome.box)
        return outcome

    def judge(self, attack: Attack) -> None:
        """Let it happen, and see that nothing came of it."""
        self._know_the_world(attack.limits)
        begun = time.monotonic()
        outcome = self.run(attack.name, limits=attack.limits, **arguments_of(attack))
        took = time.monotonic() - begun
        assert outcome.status in attack.ends, outcome
        check_contained(outcome, attack.limits, took)
        assert outcome.level == self.level, outcome
        if attack.then:
            found = self.run(attack.then, limits=attack.limits)
            assert (found.status, found.value) == (RunStatus.OK, []), found
        self.see_that_all_is_well(attack.limits, after=outcome)

    def see_that_all_is_well(self, limits: Limits = USUAL, *, after: RunOutcome | None = None) -> None:
        self._know_the_world(limits)
        for tenant in (ACME, OTHER):
            innocent = self._innocent(tenant, limits)
            if after is not None and not after.clean:
                assert innocent.box != after.box, "A box that was not clean has been used again."
            changed = _difference(self._worlds[limits], innocent.value["world"])
            assert not changed, changed
        assert not self._boxes[ACME] & self._boxes[OTHER], "Two tenants were in one box."

    def _innocent(self, tenant: str, limits: Limits) -> RunOutcome:
        outcome = self.run("innocent.run", tenant=tenant, limits=limits, number=_NUMBERS)
        assert outcome.status is RunStatus.OK, outcome
        assert outcome.value["answer"] == sum(range(_NUMBERS)), outcome
        assert outcome.value["left"] == [], outcome
        assert (outcome.stdout, outcome.stderr, outcome.clean) == ("", "", True), outcome
        return outcome

    def _know_the_world(self, limits: Limits) -> None:
        if limits not in self._worlds:
            self._worlds[limits] = self._innocent(OTHER, limits).value["world"]

    def boxes(self, engine: Engine) -> list[dict[str, Any]]:
        """The containers of this arena, as the engine lists them."""
        return engine.find({INSTANCE: self.instance})

    def close(self) -> None:
        self._stack.close()


def new_canary() -> str:
    """A text that is nowhere else."""
    return f"canary-{uuid.uuid4().hex}"


def arguments_of(attack: Attack) -> dict[str, Any]:
    return {"canary": new_canary()} if attack.name.endswith("leave_a_secret") else {}


def _difference(before: Any, now: Any) -> dict[str, Any]:
    """By name: what was, and what is."""
    names = sorted(before.keys() | now.keys())
    return {name: (before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)}


def check_events(events: list[RunEvent], limits: Limits) -> None:
    """What it said while it ran is bounded, and of the shape that readers count on."""
    for stream in ("stdout", "stderr", "progress"):
        said = "".join(event.text for event in events if event.stream == stream)
        assert len(said) <= limits.log_bytes
        assert "\0" not in said
    assert all(event.progress == {} for event in events if event.stream != "progress")
    assert sum(len(json.dumps(event.progress)) for event in events) <= 2 * limits.log_bytes


def check_contained(outcome: RunOutcome, limits: Limits, took: float) -> None:
    """It got nothing, and it neither took nor said more than it may."""
    assert not outcome.value, outcome.value
    assert len(outcome.stdout) <= limits.log_bytes
    assert len(outcome.stderr) <= limits.log_bytes
    assert outcome.nothing_ran or outcome.duration_ms < LOAD_S * 1000 + limits.wall_ms + _LATE_MS
    assert (
        took < 2 * LOAD_S + limits.wall_ms / 1000 + _PATIENCE_S
    )  # it may be tried with and without what is imported ahead
