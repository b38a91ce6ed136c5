"""Consent matcher: does a consent fit exactly the calls that a person agreed to?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from access.consents.matcher import MISFITS, ConsentValue, find_matching_consent, find_misfit, list_misfits
from access.models import ConsentMode, ConsentState
from kernel.ids import encode, new_id

NOW = datetime(2026, 11, 22, tzinfo=UTC)
CALL: dict[str, Any] = {
    "version": "1.4.0",
    "user_fingerprint": "u1",
    "arguments_fingerprint": "a1",
    "policy_hash": "p1",
    "now": NOW,
}


def a_consent(**changes: Any) -> ConsentValue:
    values: dict[str, Any] = {"id": new_id(), "mode": ConsentMode.PERIOD, "versions": "^1"}
    return ConsentValue(**(values | changes))


def once(**changes: Any) -> ConsentValue:
    bound = {"mode": ConsentMode.ONCE, "arguments_fingerprint": "a1", "policy_hash": "p1"}
    return a_consent(**(bound | changes))


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize(
    ("consent", "why"),
    [
        (a_consent(), ""),
        (a_consent(mode=ConsentMode.STANDING), ""),
        (a_consent(arguments_fingerprint="a2", policy_hash="p2"), ""),
        (a_consent(expires_at=NOW + timedelta(microseconds=1)), ""),
        (a_consent(expires_at=NOW), "expired"),
        (a_consent(versions="^2"), "other_version"),
        (a_consent(versions="1.4.1"), "other_version"),
        (a_consent(versions="not a range"), "other_version"),
        (a_consent(user_fingerprint="u1"), ""),
        (a_consent(user_fingerprint="u2"), "other_user"),
        (once(), ""),
        (once(arguments_fingerprint="a2"), "other_arguments"),
        (once(arguments_fingerprint=""), "other_arguments"),
        (once(policy_hash="p2"), "policy_changed"),
        (once(policy_hash=""), "policy_changed"),
        *((once(state=state), state) for state in ConsentState if state is not ConsentState.APPROVED),
    ],
)
def test_a_consent_fits_what_it_was_given_for(consent: ConsentValue, why: str) -> None:
    assert find_misfit(consent, **CALL) == why
    assert find_matching_consent([consent], **CALL) == (None if why else consent)


def test_a_consent_lets_go_the_classes_of_data_that_it_names_and_no_others() -> None:
    named, none = a_consent(data_classes=("personal", "health")), a_consent()

    assert find_misfit(named, **CALL, data_classes=frozenset({"personal"})) == ""
    assert find_misfit(named, **CALL, data_classes=frozenset({"personal", "payment"})) == "other_data"
    assert find_misfit(none, **CALL, data_classes=frozenset({"personal"})) == "other_data"
    assert find_misfit(none, **CALL) == ""


def test_every_reason_has_its_sentence() -> None:
    assert set(MISFITS) == {
        *(state for state in ConsentState if state is not ConsentState.APPROVED),
        *("other_version", "other_user", "other_arguments", "other_data", "policy_changed"),
    }


def test_a_consent_for_one_call_is_kept_while_another_fits() -> None:
    hour, day = (a_consent(expires_at=NOW + timedelta(hours=hours)) for hours in (1, 24))
    standing = a_consent(mode=ConsentMode.STANDING)

    assert find_matching_consent([once(), hour, day], **CALL) == day
    assert find_matching_consent([once(), hour, standing], **CALL) == standing


def test_explanations_say_of_each_consent_why_it_does_not_fit() -> None:
    fits, other = once(), once(arguments_fingerprint="a2")

    assert list_misfits([fits, other], **CALL) == [
        {
            "consent": encode("cns", other.id),
            "why": "other_arguments",
            "message": "It is for one call with other arguments.",
        }
    ]
