"""What must every sandbox do between its first run and its end? Part of the contract of sandboxes."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Limits, Outcome, Profile, Sandbox, Status
from tests.boxes import call_of, package_of, run_source

if TYPE_CHECKING:
    from pathlib import Path

SHORT = Limits(wall_ms=1_500)
MIB = 1024 * 1024


class LifeContract:
    """Subclasses give the fixture ``sandbox``."""

    @pytest.fixture
    def run(self, sandbox: Sandbox, tmp_path: Path) -> Any:
        def run(source: str, limits: Limits | None = None, **arguments: object) -> Outcome:
            return run_source(sandbox, tmp_path, source, limits=limits, **arguments)

        return run

    def test_a_run_can_be_killed_by_its_name(self, sandbox: Sandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main="import time\ndef run(): time.sleep(60)"), name="inv-to-be-killed")
        killer = threading.Timer(1.0, sandbox.kill, [call.name])
        killer.start()
        begun = time.monotonic()

        outcome = sandbox.run(Profile(), call)

        killer.join()
        assert outcome.status is Status.CANCELLED
        assert time.monotonic() - begun < 4

    def test_killing_a_run_that_is_gone_is_no_error(self, sandbox: Sandbox) -> None:
        sandbox.kill("inv-nobody")

        assert sandbox.kill_overdue() == 0

    def test_closing_ends_what_runs(self, sandbox: Sandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main="import time\ndef run(): time.sleep(60)"))
        closer = threading.Timer(1.0, sandbox.close)
        closer.start()

        outcome = sandbox.run(Profile(), call)

        closer.join()
        assert outcome.status is Status.CANCELLED

    def test_the_steps_of_a_run_follow_each_other(self, run: Any) -> None:
        outcome = run("import time\ntime.sleep(0.2)\ndef run():\n    time.sleep(0.1)\n    return 1")

        names = [name for name, _, _ in outcome.steps]
        took = {name: end - begin for name, begin, end in outcome.steps}
        assert names == ["create", "start", "load", "run", "collect"]
        assert [begin for _, begin, _ in outcome.steps] == sorted(begin for _, begin, _ in outcome.steps)
        assert took["load"] >= 190
        assert took["run"] >= 90
        assert outcome.cpu_ms > 0
        assert outcome.max_rss_bytes > MIB

    def test_many_threads_may_use_it_at_once(self, run: Any) -> None:
        with ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(lambda number: run("def run(number): return number", number=number), range(6)))

        assert [outcome.value for outcome in outcomes] == list(range(6))

    def test_it_says_what_it_is(self, sandbox: Sandbox) -> None:
        assert sandbox.check()
