"""Numbers: are amounts written as the reader's language or the reader wants them, and only for people?"""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.utils import translation

from kernel.components import quantities
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
        assert quantities.money(1_234_500_000, "EUR") == money
        assert quantities.number(-1_234_567) == number
        assert quantities.size(1536) == size
        assert quantities.dur(2250) == duration

    assert quantities.number(1234) == "1,234"


def test_limits_are_written_without_empty_decimals() -> None:
    with use_number_style(NumberStyle.COMMA):
        assert [quantities.seconds(0.5), quantities.seconds(30.0), quantities.span_ms(30_000), quantities.span_ms(2500)] == [
            "0,5 s", "30 s", "30 s", "2,50 s",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("micros", "written"),
    [
        (1_999_999, "2.00"),
        (1_004_999, "1.00"),
        (1_005_000, "1.01"),
        (-1_995_000, "-2.00"),
        (999_999, "1.0000"),
        (1_050, "0.0011"),
        (999, "0.000999"),
        (0, "0.00"),
        (9_223_372_036_854_775_807, "9,223,372,036,854.78"),
    ],
)
def test_amounts_are_rounded_and_not_cut_off(micros: int, written: str) -> None:
    assert quantities.money(micros, "EUR") == f"{written} EUR"


@pytest.mark.parametrize(
    ("ms", "written"),
    [
        (999.4, "999 ms"),
        (999.9, "1.00 s"),
        (1999, "2.00 s"),
        (2675, "2.68 s"),
        (59_990, "59.99 s"),
        (59_999, "1 m 0 s"),
        (119_990, "2 m 0 s"),
        (90_480, "1 m 30.5 s"),
        (3_599_990, "1 h 0 m"),
    ],
)
def test_durations_are_rounded_and_not_cut_off(ms: float, written: str) -> None:
    assert quantities.dur(ms) == written


def test_sizes_are_rounded_to_the_unit_that_they_are_written_in() -> None:
    written = [quantities.size(count) for count in (1023, 2007, 1024**2 - 1, 1024**4)]

    assert written == ["1,023 B", "2.0 KiB", "1.0 MiB", "1,024 GiB"]


def test_a_limit_of_whole_seconds_has_no_decimals_whatever_kind_of_number_it_is() -> None:
    assert [quantities.span_ms(30_000.0), quantities.span_ms(90_000.0), quantities.seconds(30.0)] == [
        "30 s",
        "1 m 30 s",
        "30 s",
    ]
