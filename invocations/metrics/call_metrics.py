"""Call metrics: how many calls there were, how they ended, how long they took, what they spent.

Counted when the End is committed. Attributes are words of closed sets, names of tools and ids of tenants, never values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel import names
from kernel.observability import telemetry
from kernel.singleton import Once

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter

    from invocations.end.endings import Ending
    from invocations.models import Invocation

# A preflight takes less than a millisecond, and may take five.
PREFLIGHT_SECONDS = (0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.1, 1)
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)


class _CallInstruments:
    def __init__(self, meter: Meter) -> None:
        self.ended = meter.create_counter(names.METRIC_ENDED, description="Calls by state")
        self.denied = meter.create_counter(names.METRIC_DENIED, description="Calls that were refused, by reason")
        self.errors = meter.create_counter(names.METRIC_ERRORS, description="Calls without a value, by code and reason")
        self.duration = meter.create_histogram(
            names.METRIC_DURATION,
            unit="s",
            description="From the arrival of a call to its end",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self.preflight = meter.create_histogram(
            names.METRIC_PREFLIGHT,
            unit="s",
            description="All steps of a preflight",
            explicit_bucket_boundaries_advisory=PREFLIGHT_SECONDS,
        )
        self.queue_wait = meter.create_histogram(
            names.METRIC_QUEUE_WAIT,
            unit="s",
            description="From the decision on a call to the start of its run",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self.side_effects = meter.create_counter(
            names.METRIC_SIDE_EFFECTS, description="Runs of tools with a side effect, by whether they were in a box"
        )
        for boxed in (True, False):  # there from the start: what appears with its first run has not increased
            self.side_effects.add(0, {"boxed": boxed})
        self.spent = meter.create_counter(names.METRIC_SPENT, description="What calls took of budgets, by dimension")
        self.validated = meter.create_counter(
            names.METRIC_VALIDATED, description="Values that were held against a schema, by schema and result"
        )
        self.unmapped = meter.create_counter(
            names.METRIC_UNMAPPED, description="Exceptions that nobody had thought of, by place and class"
        )


@Once
def get_call_instruments() -> _CallInstruments:
    return _CallInstruments(telemetry.get_meter())


def count_call(invocation: Invocation, ending: Ending, duration_s: float) -> None:
    """One call that has ended, however it did."""
    all_of = get_call_instruments()
    # Callers choose the name of a tool that there is not.
    tool = names.UNKNOWN_TOOL if invocation.version_id is None else invocation.tool
    of: dict[str, Any] = {names.ATTR_TENANT: str(invocation.tenant_id), names.ATTR_TOOL_NAME: tool}
    all_of.ended.add(1, of | {"state": str(ending.state), "dry_run": invocation.dry_run})
    all_of.duration.record(duration_s, {names.ATTR_TOOL_NAME: tool, "state": str(ending.state)})
    if (problem := ending.problem) is not None:
        all_of.errors.add(1, of | {"code": str(problem.code), "reason": problem.reason})
        if ending.state == "denied":
            all_of.denied.add(1, of | {"reason": problem.reason})
    if ending.ran and ending.state != "denied":
        _count_spent(ending, of)


def _count_spent(ending: Ending, of: dict[str, Any]) -> None:
    spent = get_call_instruments().spent
    spent.add(1, of | {"dimension": "calls"})
    if (outcome := ending.outcome) is not None:
        spent.add(outcome.result_bytes, of | {"dimension": "bytes"})
        spent.add(round(outcome.cpu_ms or 0), of | {"dimension": "cpu_ms"})


def record_preflight(duration_s: float, *, allowed: bool) -> None:
    get_call_instruments().preflight.record(duration_s, {"allowed": allowed})


def record_queue_wait(wait_s: float, work_class: str) -> None:
    """Between the decision, a person's or the preflight's, and the worker that took the call."""
    get_call_instruments().queue_wait.record(wait_s, {"work_class": work_class})


def count_side_effect(*, boxed: bool) -> None:
    get_call_instruments().side_effects.add(1, {"boxed": boxed})


def count_validation(schema: str, *, valid: bool) -> None:
    """A value was held against the ``input`` or ``output`` schema of a tool."""
    get_call_instruments().validated.add(1, {"schema": schema, "valid": valid})


def count_unmapped(place: str, error: str) -> None:
    get_call_instruments().unmapped.add(1, {"place": place, names.ATTR_ERROR: error})
