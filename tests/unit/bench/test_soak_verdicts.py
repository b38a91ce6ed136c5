"""Soak verdicts: does a soak say good only when it has done its work, and found nothing?"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading

import pytest

from bench.figures import CannotMeasure
from bench.soak_deployments import EMBEDDED, UPKEEP, SoakDeployment, SoakUpkeep, measure_process
from bench.soak_hub import combine_statuses, judge_activity, judge_count, run_both_soaks


def upkeep_of(env: dict[str, str], done: int = 0) -> SoakUpkeep:
    shape = SoakDeployment(EMBEDDED, "127.0.0.1:1", env, {}, {})
    return SoakUpkeep(shape, every_s=0, chance=random.Random(1), done=done)


@pytest.mark.parametrize(
    ("statuses", "status"),
    (([0, 0], 0), ([0, 1], 1), ([1, 2], 2), ([-9, 0], 1), ([0, -9], 1), ([-11, 2], 2), ([139, 0], 1)),
)
def test_a_soak_that_died_is_no_good_one(statuses: list[int], status: int) -> None:
    assert combine_statuses(statuses) == status


def test_a_shape_whose_process_is_killed_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = subprocess.Popen

    def killed(command: list[str], **more: object) -> subprocess.Popen[str]:
        code = "import os; os.kill(os.getpid(), 9)" if EMBEDDED in command else ""
        return begun([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(subprocess, "Popen", killed)

    assert run_both_soaks([]) == 1
    assert "embedded died: exit status -9" in capsys.readouterr().err


def test_a_soak_in_which_nothing_was_done_is_no_good_one() -> None:
    nothing = judge_activity(0, 0, upkeep_of({}))
    enough = judge_activity(8, 1, upkeep_of({}, done=len(UPKEEP)))

    assert [row[-1] for row in nothing] == ["NOT reached"] * 3
    assert [row[-1] for row in enough] == ["reached"] * 3


def test_one_more_than_there_may_be_is_too_many() -> None:
    assert [judge_count("x", measured, 0)[-1] for measured in (-3, 0, 1)] == ["reached", "reached", "NOT reached"]


def test_an_upkeep_that_fails_is_among_what_is_wrong() -> None:
    upkeep = upkeep_of({"no\0name": "x"})

    upkeep.run(threading.Event())

    assert "the upkeep ended after 0 commands" in upkeep.wrong[0]


def test_a_process_that_has_ended_is_named_before_anybody_has_waited_for_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    with pytest.raises(CannotMeasure, match="The process hub has ended"):
        measure_process(process.pid, "hub")
    process.wait()
