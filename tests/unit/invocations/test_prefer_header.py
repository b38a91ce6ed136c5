"""Prefer header: is what a caller prefers read as RFC 7240 says?"""

from __future__ import annotations

import pytest

from invocations.answer.prefer_header import Preferences, parse_prefer_header


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", Preferences()),
        ("respond-async", Preferences(respond_async=True)),
        ("Respond-Async, wait=10", Preferences(respond_async=True, wait_s=10)),
        ('wait="10"; why="because, of this"', Preferences(wait_s=10)),
        ("handling=lenient;x=1, WAIT = 7 , wait=9", Preferences(wait_s=7)),
        ("wait=99999", Preferences(wait_s=3600)),
        ("wait=-1, respond-async=please", Preferences(respond_async=True)),
        ("wait=soon", Preferences()),
        ("wait=\u0663", Preferences()),
        ("not-respond-async", Preferences()),
        ("return=representation; respond-async", Preferences()),
        (",,,=;", Preferences()),
    ],
)
def test_preferences_are_read_and_what_cannot_be_is_passed_over(header: str, expected: Preferences) -> None:
    assert parse_prefer_header(header) == expected
