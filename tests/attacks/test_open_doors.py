"""Open doors: what a tool was granted opens that and nothing else: are the attacks contained where all doors are open?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from invocations.sandbox.egress import EgressGate
from tests.attacks.arena import Arena
from tests.attacks.catalogue import (
    FORGING,
    KERNEL,
    LEAKING,
    LINGERING,
    OUTSIDE,
    POISONING,
    SUPERVISOR,
    USUAL,
    Attack,
)
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.attack

OPEN = Capabilities.from_json(
    {
        "fs": [{"path": "/data", "actions": ["read", "list", "write", "create", "delete"]}],
        "net": [{"host": "granted.example", "port": 443}],
        "proc": ["/usr/local/bin/sandbox-python"],
    }
)
# What these get is what was granted: a program with its loader, sockets of the internet, the way to the gate.
GRANTED = {
    "leaking.programs",
    "leaking.environment",
    "kernel.a_program_by_the_loader",
    "kernel.rare_sockets",
    "forging.the_channels_socket",
}
ATTACKS = [
    replace(attack, limits=replace(attack.limits, files=100))
    for attack in (*FORGING, *LEAKING, *LINGERING, *POISONING, *SUPERVISOR, *KERNEL, *OUTSIDE)
    if attack.limits == USUAL and attack.name not in GRANTED
]


@pytest.fixture(scope="module", params=["fresh", pytest.param("shared", marks=pytest.mark.long)])
def open_arena(request: pytest.FixtureRequest) -> Iterator[Arena]:
    gate = EgressGate()
    arena = Arena(request.param, capabilities=OPEN, gate=gate)
    yield arena
    arena.close()
    gate.close()


@pytest.mark.req("SVC-10", "TOOLS-17")
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_contained_although_doors_are_open(attack: Attack, open_arena: Arena) -> None:
    open_arena.judge(attack)
