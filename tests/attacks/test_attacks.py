"""Attacks: does anything that a hostile tool does reach beyond its own call?"""

from __future__ import annotations

import time
from contextlib import closing

import pytest

from invocations.sandbox.engine import Engine
from tests.attacks.arena import Arena
from tests.attacks.catalogue import ATTACKS, SUPERVISOR, Attack

pytestmark = pytest.mark.attack


@pytest.mark.req("SVC-10", "TOOLS-17")
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_contained(attack: Attack, arena: Arena) -> None:
    arena.judge(attack)


@pytest.mark.parametrize("level", ["shared", "fresh", "single", "cold"])
def test_nothing_is_left_of_a_pool_that_was_attacked(level: str) -> None:
    arena = Arena(level)
    with closing(Engine()) as engine:
        for attack in SUPERVISOR[:8]:
            arena.judge(attack)
        arena.close()
        until = time.monotonic() + 5
        while arena.boxes(engine) and time.monotonic() < until:
            time.sleep(0.05)

        assert arena.boxes(engine) == []
