"""Call outcomes: is each call found by its outcome?"""

from __future__ import annotations

from invocations.call_outcomes import UNKNOWN_OUTCOMES
from invocations.problems import OutcomeUnknown


def test_each_reason_of_an_unknown_outcome_is_searched_for() -> None:
    """No index of calls says their state; the end of a call with another reason is an error."""
    assert {OutcomeUnknown.reason, *(each.reason for each in OutcomeUnknown.__subclasses__())} == set(UNKNOWN_OUTCOMES)
