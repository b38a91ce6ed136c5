"""Isolation levels: how isolated a call is, on this host and as things are.

At least as its profile asks; more where the host cannot, where nobody may use the box again, or where there is no pool.
"""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING

from invocations.sandbox.base import SandboxCall

if TYPE_CHECKING:
    from invocations.sandbox.base import Profile

LEVELS = SHARED, FRESH, SINGLE, COLD = ("shared", "fresh", "single", "cold")  # as policies know them, weakest first
REUSED = (SHARED, FRESH)


def choose_level(profile: Profile, call: SandboxCall, *, pooled: bool, namespaces: bool) -> str:
    """``pooled``: there is a pool. ``namespaces``: a call can have those of its own here."""
    wanted = [profile.isolation]
    if profile.isolation == FRESH and not namespaces:
        wanted.append(SINGLE)
    if call.key is None or call.program or call.is_on_node or profile.untrusted:
        wanted.append(SINGLE)
    if not pooled:
        wanted.append(COLD)
    return max(wanted, key=LEVELS.index)


def build_smallest_call() -> SandboxCall:
    """One that any box can do, to see what a box can do."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("smallest/__init__.py", "def run():\n    return None\n")
    context = {"call_id": "smallest", "tool_id": "toolhub.smallest.call", "started_at": "1970-01-01T00:00:00+00:00"}
    return SandboxCall("", packed.getvalue(), module="smallest", entry="run", arguments=b"{}", context=context)
