"""Limits: are they read in the units in which people think?"""

from __future__ import annotations

import pytest

from kernel.components.limits import WORDS, limit_amount, limit_word
from unitools.capabilities.wire import CEILINGS


@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("memory_bytes", 536_870_912, "512 MiB"),
        ("wall_ms", 30_000, "30 s"),
        ("wall_ms", 1500, "1.50 s"),
        ("wall_ms", 120_000, "2 minutes"),
        ("cpu_s", 11, "11 s"),
        ("cpu_ms", 2000, "2 s"),
        ("max_bytes_in", 1_048_576, "1 MiB"),
        ("tmp", 33_554_432, "32 MiB"),
        ("processes", 1064, "1,064"),
    ],
)
def test_an_amount_has_the_unit_that_people_use(name: str, amount: int, expected: str) -> None:
    assert limit_amount(name, amount) == expected


def test_a_limit_without_a_word_keeps_its_name() -> None:
    assert (limit_word("memory_bytes"), limit_word("new_things")) == ("memory", "new_things")


def test_every_ceiling_of_capabilities_has_words() -> None:
    assert set(CEILINGS) - set(WORDS) == set()
