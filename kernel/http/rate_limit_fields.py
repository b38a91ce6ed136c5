"""Rate limit fields: how much of a limit is left, as draft-ietf-httpapi-ratelimit-headers (10) writes it.

Two lists of structured fields (RFC 9651): what the limits are, and what is left of each: its name, ``r`` requests, whole again in
``t`` seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class RateLimitState(NamedTuple):
    """A limit of ``quota`` requests in ``window_s`` seconds. ``name`` is printable ASCII without quotation marks."""

    name: str
    quota: int
    window_s: int
    remaining: int
    reset_s: int | None = None


def write_rate_limit_fields(states: Iterable[RateLimitState]) -> dict[str, str]:
    """The headers; none where nothing is limited."""
    known = list(states)
    if not known:
        return {}
    left = (
        f'"{each.name}";r={max(0, each.remaining)}' + ("" if each.reset_s is None else f";t={max(0, each.reset_s)}")
        for each in known
    )
    return {
        "RateLimit-Policy": ", ".join(f'"{each.name}";q={each.quota};w={each.window_s}' for each in known),
        "RateLimit": ", ".join(left),
    }
