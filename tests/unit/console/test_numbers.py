"""Numbers: are amounts written as the reader's language or the reader wants them, and only for people?"""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.utils import translation

from kernel.components import labels
from kernel.components.numbers import NARROW_SPACE, NumberStyle, format_number, use_number_style


@pytest.mark.parametrize(
    ("language", "written"),
    [
        ("en", "1,234,567.50"),
        ("zh-hans", "1,234,567.50"),
        ("de", "1.234.567,50"),
        ("fr", "1\N{NO-BREAK SPACE}234\N{NO-BREAK SPACE}567,50"),
    ],
)
def test_numbers_are_written_as_in_the_language(language: str, written: str) -> None:
    with translation.override(language):
        assert format_number(Decimal("1234567.5"), 2).replace("\u202f", "\N{NO-BREAK SPACE}") == written


@pytest.mark.parametrize(
    ("style", "money", "number", "size", "duration"),
    [
        (NumberStyle.LANGUAGE, "1,234.50 EUR", "-1,234,567", "1.5 KiB", "2.25 s"),
        (NumberStyle.POINT, "1,234.50 EUR", "-1,234,567", "1.5 KiB", "2.25 s"),
        (NumberStyle.COMMA, "1.234,50 EUR", "-1.234.567", "1,5 KiB", "2,25 s"),
        (
            NumberStyle.SPACE,
            f"1{NARROW_SPACE}234,50 EUR",
            f"-1{NARROW_SPACE}234{NARROW_SPACE}567",
            "1,5 KiB",
            "2,25 s",
        ),
    ],
)
def test_a_person_has_amounts_written_as_they_have_chosen(
    style: NumberStyle, money: str, number: str, size: str, duration: str
) -> None:
    with use_number_style(style):
        assert labels.money(1_234_500_000, "EUR") == money
        assert labels.number(-1_234_567) == number
        assert labels.size(1536) == size
        assert labels.dur(2250) == duration

    assert labels.number(1234) == "1,234"


def test_limits_are_written_without_empty_decimals() -> None:
    with use_number_style(NumberStyle.COMMA):
        assert [labels.seconds(0.5), labels.seconds(30.0), labels.span_ms(30_000), labels.span_ms(2500)] == [
            "0,5 s", "30 s", "30 s", "2,50 s",
        ]  # fmt: skip
