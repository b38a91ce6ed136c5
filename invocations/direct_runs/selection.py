"""Selection: which calls run directly, and which in a box."""

from __future__ import annotations

from typing import TYPE_CHECKING

from invocations.sandbox.isolation.levels import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.direct_runs.pool import DirectSandbox
    from invocations.sandbox.base import Profile, RunEvent, RunOutcome, Sandbox, SandboxCall
    from invocations.sandbox.stats import SandboxSnapshot
    from registry.models import ToolVersion


def is_vouched_for(version: ToolVersion) -> bool:
    """An operator's mark, on a version that has no effect and asks for no sandbox; asked again for each run."""
    asks = bool(version.view.document.get("requires_sandbox", True))
    return version.trusted_at is not None and version.side_effect == "None" and not asks


def needs_box(profile: Profile, call: SandboxCall, *, usual: str) -> bool:
    """For whatever a call is given or may reach beside its arguments, and for each isolation above the usual one."""
    given = (
        call.dependencies or call.files or call.secrets or call.program or call.server or call.is_by_gate or call.image
    )
    reaches = profile.outside or profile.limits.files or profile.capabilities.secrets
    stronger = LEVELS.index(profile.isolation) > LEVELS.index(usual)
    return bool(not call.trusted or given or reaches or stronger or profile.untrusted)


class SelectingSandbox:
    """Implements :class:`invocations.sandbox.base.Sandbox`: calls that are vouched for run directly, all others in ``boxes``."""

    def __init__(self, boxes: Sandbox, direct: DirectSandbox, *, usual: str) -> None:
        self.boxes, self.direct, self.usual = boxes, direct, usual

    def missing(self, profile: Profile, *, by_gate: bool = False) -> tuple[str, ...]:
        return self.boxes.missing(profile, by_gate=by_gate)

    def run(
        self, profile: Profile, call: SandboxCall, on_event: Callable[[RunEvent], None] | None = None
    ) -> RunOutcome:
        where = self.boxes if needs_box(profile, call, usual=self.usual) else self.direct
        return where.run(profile, call, on_event)

    @property
    def closing(self) -> bool:
        return self.boxes.closing

    def kill(self, name: str) -> None:
        self.direct.kill(name)
        self.boxes.kill(name)

    def snapshot(self) -> SandboxSnapshot | None:
        return self.boxes.snapshot()

    def check(self) -> str:
        return self.boxes.check()

    def close(self) -> None:
        self.direct.close()
        self.boxes.close()
