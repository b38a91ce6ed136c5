"""Limits: are they read in the units in which people think?"""

from __future__ import annotations

import pytest

from kernel.components.limits import limit_amount, limit_word


@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("memory_bytes", 536_870_912, "512 MiB"),
        ("wall_ms", 30_000, "30 s"),
        ("wall_ms", 1500, "1.50 s"),
        ("wall_ms", 120_000, "2 minutes"),
        ("cpu_s", 11, "11 s"),
        ("processes", 1064, "1,064"),
    ],
)
def test_an_amount_has_the_unit_that_people_use(name: str, amount: int, expected: str) -> None:
    assert limit_amount(name, amount) == expected


def test_a_limit_without_a_word_keeps_its_name() -> None:
    assert (limit_word("memory_bytes"), limit_word("new_things")) == ("memory", "new_things")
