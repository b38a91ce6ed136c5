"""Contract of lives: what must every sandbox do between its first run and its end? Part of the contract of sandboxes."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from invocations.sandbox.base import Limits, Profile, RunEvent, RunOutcome, RunStatus, Sandbox
from tests.support.sandboxes import call_of, package_of, run_source

if TYPE_CHECKING:
    from pathlib import Path

SHORT = Limits(wall_ms=1_500)
MIB = 1024 * 1024
SAYS_THAT_IT_RUNS = """
import time
from unitools import runtime
def run():
    runtime.progress(0.5, "here")
    time.sleep(60)
"""


class LifeContract:
    """Subclasses give the fixture ``sandbox``, and ``own_sandbox`` for a test that closes it."""

    @pytest.fixture
    def run(self, sandbox: Sandbox, tmp_path: Path) -> Any:
        def run(source: str, limits: Limits | None = None, **arguments: object) -> RunOutcome:
            return run_source(sandbox, tmp_path, source, limits=limits, **arguments)

        return run

    @pytest.mark.req("SVC-7")
    def test_a_run_can_be_killed_by_its_name(self, sandbox: Sandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main=SAYS_THAT_IT_RUNS))
        killers: list[threading.Thread] = []

        def kill(event: RunEvent) -> None:
            killers.append(threading.Thread(target=sandbox.kill, args=[call.name]))
            killers[-1].start()

        outcome = sandbox.run(Profile(), call, kill)

        for killer in killers:
            killer.join()
        assert len(killers) == 1
        assert outcome.status is RunStatus.CANCELLED
        assert outcome.duration_ms < Limits().wall_ms

    @pytest.mark.req("TOOLS-32")
    def test_what_a_tool_says_is_told_while_it_runs(self, sandbox: Sandbox, tmp_path: Path) -> None:
        source = (
            "import sys\nfrom unitools import runtime\ndef run():\n    runtime.log('Hello \u4e2d')\n"
            "    print('careful', file=sys.stderr)\n    runtime.progress(0.5, 'half')\n    return 1"
        )
        said: list[RunEvent] = []

        outcome = sandbox.run(Profile(), call_of(package_of(tmp_path, main=source)), said.append)

        assert outcome.value == 1, outcome
        assert sorted(said, key=lambda event: event.stream) == [
            RunEvent("progress", progress={"log": "Hello \u4e2d"}),
            RunEvent("progress", progress={"fraction": 0.5, "message": "half"}),
            RunEvent("stderr", "careful\n"),
            RunEvent("stdout", "Hello \u4e2d\n"),
        ]
        assert outcome.stdout == "Hello \u4e2d\n"

    @pytest.mark.req("SVC-7")
    def test_killing_a_run_that_is_gone_is_no_error(self, sandbox: Sandbox) -> None:
        sandbox.kill("inv-nobody")

    @pytest.mark.req("SVC-7")
    def test_closing_ends_what_runs_and_begins_nothing_more(self, own_sandbox: Sandbox, tmp_path: Path) -> None:
        call = call_of(package_of(tmp_path, main=SAYS_THAT_IT_RUNS))
        said: list[RunEvent] = []

        def close(event: RunEvent) -> None:
            said.append(event)
            threading.Thread(target=own_sandbox.close).start()

        outcome = own_sandbox.run(Profile(), call, close)

        assert said == [RunEvent("progress", progress={"fraction": 0.5, "message": "here"})]
        assert outcome.status is RunStatus.CANCELLED
        assert own_sandbox.run(Profile(), call).status is RunStatus.CANCELLED

    @pytest.mark.req("SVC-5")
    def test_the_steps_of_a_run_follow_each_other(self, run: Any) -> None:
        outcome = run("import time\ntime.sleep(0.2)\ndef run():\n    time.sleep(0.1)\n    return 1")

        names = [name for name, _, _ in outcome.steps]
        took = {name: end - begin for name, begin, end in outcome.steps}
        assert names == ["wait", "load", "run", "collect"]
        assert [begin for _, begin, _ in outcome.steps] == sorted(begin for _, begin, _ in outcome.steps)
        assert took["load"] >= 190
        assert took["run"] >= 90
        assert outcome.cpu_ms > 0
        assert outcome.max_rss_bytes > MIB

    @pytest.mark.req("SVC-6")
    def test_many_threads_may_use_it_at_once(self, run: Any) -> None:
        with ThreadPoolExecutor(3) as pool:
            outcomes = list(pool.map(lambda number: run("def run(number): return number", number=number), range(6)))

        assert [outcome.value for outcome in outcomes] == list(range(6))

    @pytest.mark.req("SVC-6")
    def test_it_says_what_it_is(self, sandbox: Sandbox) -> None:
        assert sandbox.check()
