"""Hostile imports: is a tool that does harm by being loaded contained?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.base import Limits, RunStatus
from tests.attacks.arena import check_contained
from tests.attacks.levels import MOSTLY_FRESH
from tests.attacks.loading import ENDS, PACKAGES

if TYPE_CHECKING:
    from tests.attacks.arena import Arena

pytestmark = [pytest.mark.attack, MOSTLY_FRESH]

SOON = Limits(wall_ms=1_500)


@pytest.mark.req("SVC-10", "TOOLS-17")
@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_that_does_harm_while_it_is_loaded_is_contained(name: str, arena: Arena) -> None:
    ends = []
    for _ in range(2):  # the second comes to a box that has the package already, if there is one
        begun = time.monotonic()
        outcome = arena.run("main.run", limits=SOON, package=PACKAGES[name])
        check_contained(outcome, SOON, time.monotonic() - begun)
        assert outcome.status in ENDS, outcome
        ends.append(outcome.status)

    assert ends[0] == ends[1] or RunStatus.START_FAILED not in ends, (
        "It depends on what was there before whether it is run."
    )
    arena.see_that_all_is_well(SOON)
