"""How isolated is a call, on this host and as things are?

At least as its profile asks; more where the host cannot, where nobody may use the box again, or where there is no pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from invocations.sandbox.base import Profile, SandboxCall

LEVELS = SHARED, FRESH, SINGLE, COLD = ("shared", "fresh", "single", "cold")  # as policies know them, weakest first
REUSED = (SHARED, FRESH)


def choose_level(profile: Profile, call: SandboxCall, *, pooled: bool, namespaces: bool) -> str:
    """``pooled``: there is a pool. ``namespaces``: a call can have those of its own here."""
    wanted = [profile.isolation]
    if profile.isolation == FRESH and not namespaces:
        wanted.append(SINGLE)
    if call.key is None or call.program or profile.untrusted:
        wanted.append(SINGLE)
    if not pooled:
        wanted.append(COLD)
    return max(wanted, key=LEVELS.index)
