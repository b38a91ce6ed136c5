"""Run limits: how far a run may go, and which limit it has come to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

MAX_STEPS, MAX_SECONDS, MAX_EQUAL_CALLS = 100, 24 * 60 * 60, 100
MAX_COST_MICROS = 10**15


@dataclass(frozen=True, slots=True)
class RunLimits:
    """``steps``: how often the model is asked. ``cost_micros``: what all calls may cost, in millionths of the tenant's currency; None:
    as much as the budgets have. ``seconds``: from the beginning, without the time in which a call waited for a person.
    ``equal_calls``: how often the same call of a tool is made, with the same arguments.
    """

    steps: int = 10
    cost_micros: int | None = None
    seconds: int = 300
    equal_calls: int = 3

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def allows_cost(self, micros: int) -> bool:
        return self.cost_micros is None or micros <= self.cost_micros
