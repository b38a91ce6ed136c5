"""The control of the attacks: do the attacks do harm where nothing stands against them? Otherwise the suite would prove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.attacks.catalogue import ATTACKS, OUTSIDE, Attack
from tests.attacks.control import Control

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.attack

BITES = 20  # at least, of all
SOME = (
    "exhaustion.zombies",
    "leaking.programs",
    "leaking.the_package_rewritten",
    "lingering.leave_files",
    "lingering.leave_a_process",
    "supervisor.trace",
    "kernel.system_calls",
    "kernel.another_user",
    "namespaces.capabilities",
)


@pytest.fixture
def control() -> Iterator[Control]:
    found = Control()
    yield found
    found.close()


@pytest.mark.parametrize("attack", [each for each in ATTACKS if each.name in SOME], ids=str)
def test_the_obvious_way_does_not_contain(attack: Attack, control: Control) -> None:
    assert control.fails(attack)


@pytest.mark.long
def test_the_obvious_way_fails_the_suite(control: Control) -> None:
    """Without those that reach for the network, which the control has not got."""
    failed = {attack.name: why for attack in ATTACKS if attack not in OUTSIDE and (why := control.fails(attack))}
    print(f"{len(failed)} of {len(ATTACKS) - len(OUTSIDE)} attacks were not contained by exec:")
    print("\n".join(f"  {name}: {why}" for name, why in failed.items()))

    assert len(failed) >= BITES
