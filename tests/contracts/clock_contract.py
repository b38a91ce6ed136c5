"""Contract of clocks: what time is it in a box, and what is chance there? Run on the fake and on the real one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Profile, RunStatus, Sandbox
from tests.support.sandboxes import call_of, package_of

if TYPE_CHECKING:
    from pathlib import Path

    from invocations.sandbox.base import SandboxCall

NOW, SEED = "2026-03-01T23:59:59.500000+00:00", "5eed" * 8
CHANCE = """
import random
from unitools import runtime

FIRST = random.random()

def run():
    import string
    return [FIRST, random.random(), random.choice(string.ascii_letters), runtime.now().isoformat(), str(runtime.current_call().seed)]
"""
TIME = """
import os, random, secrets, time, uuid
from datetime import date, datetime, timezone

def run():
    begun = time.time()
    time.sleep(0.001)
    moments = [datetime.now(timezone.utc).isoformat(), str(datetime.now()), date.today().isoformat(), time.strftime("%Y-%m-%d")]
    chance = [str(uuid.uuid4()), str(uuid.uuid1()), os.urandom(8).hex(), secrets.token_hex(8), random.Random().random()]
    kinds = [isinstance(datetime.now(), date), isinstance(datetime.fromisoformat("2026-01-01"), datetime), time.time() > begun]
    return {"begun": begun, "moments": moments, "chance": chance, "kinds": kinds}
"""


def recorded(call: SandboxCall, *, replay: bool) -> SandboxCall:
    return replace(call, context=call.context | {"now": NOW, "seed": SEED}, replay=replay)


class ClockContract:
    @pytest.mark.req("TOOLS-28")
    def test_chance_is_the_calls_seed_so_that_a_call_can_be_run_again(self, sandbox: Sandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main=CHANCE))

        said = [sandbox.run(Profile(), recorded(call, replay=again)) for again in (False, True, True)]
        other = sandbox.run(Profile(), replace(call, context=call.context | {"seed": "1"}))

        assert said[0].status is RunStatus.OK, said[0]
        assert said[0].value == said[1].value == said[2].value
        assert said[0].value[3:] == [NOW, str(int(SEED, 16))]
        assert other.value[:3] != said[0].value[:3]

    @pytest.mark.req("TOOLS-28")
    def test_a_replay_sees_the_recorded_time_and_the_same_chance_wherever_it_asks(
        self, sandbox: Sandbox, tmp_path: Path
    ) -> None:
        call = call_of(package_of(tmp_path, main=TIME))

        once, twice = (sandbox.run(Profile(), recorded(call, replay=True)) for _ in range(2))
        usual: Any = sandbox.run(Profile(), recorded(call, replay=False)).value

        assert once.status is RunStatus.OK, once
        assert once.value == twice.value
        assert once.value["moments"][0].startswith("2026-03-01T23:59:59.501")
        assert once.value["moments"][2:] == ["2026-03-01", "2026-03-01"]
        assert all(once.value["kinds"])
        assert usual["begun"] > once.value["begun"]
        assert not set(map(str, usual["chance"])) & set(map(str, once.value["chance"]))
