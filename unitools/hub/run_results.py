"""Run results: what came of an agent run in a hub, as typed values."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from unitools.hub.errors import NotUnderstood, Refused, build_refusal
from unitools.hub.model_results import MICROS

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class RunStep:
    """One call of the model, or of a tool that it proposed. ``cost_micros`` is None where there is no price."""

    turn: int
    role: str
    tool: str
    state: str
    reason: str = ""
    cost_micros: int | None = None
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """A run that has ended. ``stop_reason`` is ``finished`` where the model has answered; ``problem`` is why it has not, and is not
    raised: what it came to until then is here as well. ``text`` is what the model has said last, ``output`` the value where JSON was
    asked for.
    """

    run_id: str
    state: str
    stop_reason: str
    text: str = ""
    output: Any = None
    model: str = ""
    steps: tuple[RunStep, ...] = ()
    cost_micros: int = 0
    unpriced_calls: int = 0
    problem: Refused | None = None
    trace_id: str = ""
    replayed: bool = False
    envelope: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_finished(self) -> bool:
        return self.problem is None

    @property
    def cost(self) -> Decimal:
        """In the currency of the hub's prices, without the calls that have none (``unpriced_calls``)."""
        return Decimal(self.cost_micros) / MICROS


def read_run_id(envelope: Mapping[str, Any]) -> str:
    return str((envelope.get("data") or {}).get("run_id") or "")


def read_run(envelope: Mapping[str, Any], *, replayed: bool = False) -> RunAnswer:
    data, error = envelope.get("data"), envelope.get("error")
    if not isinstance(data, dict) or not data.get("run_id"):
        raise NotUnderstood("The answer holds no run; is this hub older than this client?", status=200)
    said = data.get("answer") or {}
    return RunAnswer(
        run_id=str(data["run_id"]),
        state=str(data.get("state") or ""),
        stop_reason=str(data.get("stop_reason") or ""),
        text=str(said.get("text") or ""),
        output=said.get("output"),
        model=str(said.get("model") or data.get("model") or ""),
        steps=tuple(_read_step(each) for each in data.get("steps") or ()),
        cost_micros=int(data.get("cost_micros") or 0),
        unpriced_calls=int(data.get("unpriced_calls") or 0),
        problem=build_refusal(error, status=200) if isinstance(error, dict) else None,
        trace_id=str(data.get("trace_id") or ""),
        replayed=replayed,
        envelope=envelope,
    )


def _read_step(said: Mapping[str, Any]) -> RunStep:
    return RunStep(
        turn=int(said.get("turn") or 0),
        role=str(said.get("role") or ""),
        tool=str(said.get("tool") or ""),
        state=str(said.get("state") or ""),
        reason=str(said.get("reason") or ""),
        cost_micros=said.get("cost_micros"),
        call_id=str((said.get("call") or {}).get("call_id") or ""),
    )
