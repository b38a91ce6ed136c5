"""Step log: the steps that a call went through, and when.

A step is a plain dict, stored with the invocation and drawn as the waterfall: ``name``, ``kind`` (control, person, tool),
``begin_ms`` and ``end_ms`` relative to the invocation's ``created_at``, ``status`` and a short ``note`` without values.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSED, FAILED, SKIPPED = "ok", "failed", "skipped"


def read_step_result(steps: list[dict[str, Any]], name: str) -> bool | None:
    """What the step found; None when it was skipped, or was never come to."""
    found = {step["name"]: step["status"] for step in steps}.get(name, SKIPPED)
    return None if found == SKIPPED else found != FAILED


class StepLog:
    """Collects steps of one process against the invocation's beginning."""

    def __init__(self, created_at: datetime) -> None:
        self.created_at = created_at
        self.steps: list[dict[str, Any]] = []
        # Wall clock once, then the monotonic clock: a clock that is set back cannot make a step negative.
        self._offset_ms = max(0.0, (datetime.now(UTC) - created_at).total_seconds() * 1000)
        self._origin = time.monotonic()

    def now_ms(self) -> float:
        return self._offset_ms + (time.monotonic() - self._origin) * 1000

    def add(
        self, name: str, kind: str, begin_ms: float, end_ms: float, *, status: str = PASSED, note: str = ""
    ) -> None:
        self.steps.append(
            {
                "name": name,
                "kind": kind,
                "begin_ms": round(begin_ms, 3),
                "end_ms": round(max(begin_ms, end_ms), 3),
                "status": status,
                "note": note,
            }
        )

    @contextmanager
    def step(self, name: str, kind: str = "control") -> Iterator[dict[str, Any]]:
        """Time a block; the yielded dict takes ``note``. An exception marks the step failed and goes on."""
        begin, told = self.now_ms(), {"note": "", "status": PASSED}
        try:
            yield told
        except BaseException:
            told["status"] = FAILED
            raise
        finally:
            self.add(name, kind, begin, self.now_ms(), status=told["status"], note=told["note"])
