"""Sandbox preload exclusions: when is what a tool imports of others imported ahead of its calls?"""

from __future__ import annotations

from invocations.sandbox.preload_exclusions import PreloadExclusions


def test_what_failed_ahead_of_calls_is_left_to_them_for_a_while() -> None:
    now = [0.0]
    ahead = PreloadExclusions(clock=lambda: now[0])

    ahead.note_failure("a", ahead=True)

    assert (ahead.may("a"), ahead.may("b")) == (False, True)
    now[0] = 3_600.0
    assert ahead.may("a")


def test_a_load_that_comes_to_nothing_without_it_too_did_not_fail_because_of_it() -> None:
    ahead = PreloadExclusions(clock=lambda: 0.0)
    ahead.note_failure("a", ahead=True)

    ahead.note_failure("a", ahead=False)

    assert ahead.may("a")
