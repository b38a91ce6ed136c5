"""Consent matcher: which consent fits a call, and why the others do not.

Pure functions over plain values. A consent for one call fits only the very arguments that were approved, under the policy
that they were approved under; one for a time or until it is revoked fits any arguments.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from access.models import ConsentMode, ConsentState
from kernel.ids import encode
from unitools.semver import Range, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID


class ConsentValue(NamedTuple):
    """A consent of the agent for the tool, as plain values. Empty texts bind to nothing."""

    id: UUID
    mode: str
    versions: str
    user_fingerprint: str = ""
    arguments_fingerprint: str = ""
    policy_hash: str = ""
    expires_at: datetime | None = None
    state: str = ConsentState.APPROVED
    decided_at: datetime | None = None
    data_classes: Sequence[str] = ()

    def is_younger_than(self, validity_s: int | None, now: datetime) -> bool:
        """Whether it was given within so many seconds; None bounds nothing."""
        return validity_s is None or (
            self.decided_at is not None and (now - self.decided_at).total_seconds() < validity_s
        )


# Why a consent does not fit → the sentence.
MISFITS: dict[str, str] = {
    ConsentState.REQUESTED: "It waits for a decision.",
    ConsentState.DENIED: "It was denied.",
    ConsentState.REVOKED: "It was revoked.",
    ConsentState.USED: "It was for one call, and was used.",
    ConsentState.EXPIRED: "It has expired.",
    "other_version": "It is for other versions of the tool.",
    "other_user": "It is for calls on behalf of another user.",
    "other_arguments": "It is for one call with other arguments.",
    "other_data": "It does not name all classes of sensitive data that the call sends.",
    "policy_changed": "It is for one call under a policy that has changed since.",
}


def find_misfit(
    consent: ConsentValue,
    *,
    version: str,
    user_fingerprint: str,
    arguments_fingerprint: str,
    policy_hash: str,
    now: datetime,
    data_classes: frozenset[str] = frozenset(),
) -> str:
    """Why the consent does not fit the call, as a word of :data:`MISFITS`; empty when it fits. What cannot be read fits nothing."""
    if consent.state != ConsentState.APPROVED:
        return str(consent.state)
    if consent.expires_at is not None and consent.expires_at <= now:
        return ConsentState.EXPIRED
    if not in_range(version, consent.versions):
        return "other_version"
    if consent.user_fingerprint and consent.user_fingerprint != user_fingerprint:
        return "other_user"
    if not data_classes <= set(consent.data_classes):
        return "other_data"
    if consent.mode != ConsentMode.ONCE:
        return ""
    if not consent.arguments_fingerprint or consent.arguments_fingerprint != arguments_fingerprint:
        return "other_arguments"
    return "" if consent.policy_hash and consent.policy_hash == policy_hash else "policy_changed"


@lru_cache(maxsize=10_000)
def in_range(version: str, versions: str) -> bool:
    try:
        return Version.parse(version) in Range.parse(versions)
    except ValueError:
        return False


def _lasts(consent: ConsentValue) -> tuple[bool, float, str]:
    """Those for a time before those for one call, which are spent; among them the one that holds longest."""
    holds = float("inf") if consent.expires_at is None else consent.expires_at.timestamp()
    return consent.mode == ConsentMode.ONCE, -holds, str(consent.id)


def find_matching_consent(
    consents: Iterable[ConsentValue],
    *,
    version: str,
    user_fingerprint: str,
    arguments_fingerprint: str,
    policy_hash: str,
    now: datetime,
    data_classes: frozenset[str] = frozenset(),
) -> ConsentValue | None:
    """The consent that the call goes ahead with, if there is one. ``data_classes``: what it lets go to where it may not go else."""
    call: dict[str, Any] = {
        "version": version,
        "user_fingerprint": user_fingerprint,
        "arguments_fingerprint": arguments_fingerprint,
        "policy_hash": policy_hash,
        "now": now,
        "data_classes": data_classes,
    }
    return min((each for each in consents if not find_misfit(each, **call)), key=_lasts, default=None)


def list_misfits(consents: Iterable[ConsentValue], **call: Any) -> list[dict[str, str]]:
    """For explanations: each consent that does not fit, the word for why, and the sentence. Takes what
    :func:`find_matching_consent` takes.
    """
    return [
        {"consent": encode("cns", each.id), "why": why, "message": MISFITS[why]}
        for each in consents
        if (why := find_misfit(each, **call))
    ]
