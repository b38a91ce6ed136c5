"""Recorded boxes: real boxes that keep what they were asked to run, and whose outcomes a test may change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.sandbox.base import Profile, RunOutcome, Sandbox, SandboxCall


class RecordedBoxes:
    """The real boxes; the call is kept, and a test may have the outcome changed."""

    def __init__(self, boxes: Sandbox) -> None:
        self._boxes = boxes
        self.calls: list[SandboxCall] = []
        self.change: Callable[[RunOutcome], RunOutcome] = lambda outcome: outcome
        self.instead: list[RunOutcome] = []  # of runs, in turn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._boxes, name)

    def run(self, profile: Profile, call: SandboxCall, on_event: Any = None) -> RunOutcome:
        self.calls.append(call)
        if self.instead:
            return self.instead.pop(0)
        return self.change(self._boxes.run(profile, call, on_event))
