"""Reach: what boxes cannot let a tool do, asked without any engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.sandbox.egress import list_unenforceable
from invocations.sandbox.isolation.browser_bounds import list_unenforceable_bounds

if TYPE_CHECKING:
    from invocations.sandbox.base import Profile


def list_missing_capabilities(profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
    """Of a host with an egress gate: the bounds in ``profile`` that nothing there can hold a tool to."""
    return list_unenforceable(profile.capabilities, by_gate=by_gate) + list_unenforceable_bounds(profile.capabilities)
