"""Replay isolation: what a run gets that is made to compare, and what it never gets.

The recorded code, arguments, clock and seed. Never: a network, a browser, secrets, the tenant's files, a box that anybody used or will
use, the call's own id or its idempotency key, and a listener. What it leaves is read and thrown away.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evidence import services as evidence
from invocations.sandbox.base import SandboxCall
from invocations.sandbox.isolation.levels import LEVELS, SINGLE
from kernel.ids import encode
from unitools.capabilities import Capabilities

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

    from invocations.sandbox.base import Profile
    from registry.models import ToolVersion

NOTHING = Capabilities()
# What the fence takes away, by the word for it.
TAKEN = {"net": "network", "cidr": "network", "browser": "browser", "secrets": "secrets", "fs": "files"}


def isolate_profile(profile: Profile, *, accepted: str) -> tuple[Profile, list[str]]:
    """The recorded profile without anything outside the box, and the words for what it had of that.

    ``accepted``: the weakest level that the version accepts which is run, and may be another than the recorded one; empty: any.
    """
    reach = profile.capabilities
    taken = dict.fromkeys(word for name, word in TAKEN.items() if getattr(reach, name))
    left = reach.replaced(**{name: getattr(NOTHING, name) for name in TAKEN})
    level = max(profile.isolation, accepted or SINGLE, SINGLE, key=LEVELS.index)
    limits = replace(profile.limits, files=0)
    return replace(profile, capabilities=left, isolation=level, limits=limits), list(taken)


def build_comparison_call(
    id: UUID,
    version: ToolVersion,
    sealed: dict[str, Any],
    *,
    package: bytes,
    dependencies: Path | None,
    image: str,
    context: dict[str, Any],
    config: dict[str, Any],
) -> SandboxCall:
    """``context`` has the recorded times; what names the call to the world is another one."""
    envelope = sealed["envelope"]
    fresh = {
        "call_id": encode("inv", id),  # of no call
        "tool_id": version.tool.name,
        "tool_version": version.version,
        "idempotency_key": f"idk_{id.hex}" if version.view.idempotency == "keyed" else None,
        "traceparent": "",
        "seed": sealed.get("seed", "0"),
    }
    said = {name: envelope[name] for name in ("locale", "currency", "timezone", "request_id", "session_id", "client")}
    return SandboxCall(
        name=encode("inv", id),
        package=package,
        module=version.view.module,
        entry=version.view.entry,
        arguments=evidence.json_bytes(sealed["arguments"]),
        context=said | context | fresh,
        labels={"toolhub.tool": version.tool.name, "toolhub.replay": "yes"},
        dependencies=dependencies,
        config=config,
        program=version.view.program,
        server=version.view.server_start,
        asks=version.view.server_request,
        image=image,
        replay=True,
    )
