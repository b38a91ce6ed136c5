"""Call health: do people and monitors see how calls go, and what nobody had thought of?"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.utils import timezone
from django.utils.log import configure_logging
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from invocations.metrics import call_metrics
from invocations.models import Invocation, Unmapped
from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.service_levels import call_health
from invocations.service_levels.call_health import CallHealth, measure_health
from invocations.service_levels.unmapped_errors import ANSWERS, answers_since, list_unmapped_since, note_unmapped
from kernel.observability import telemetry
from tests.support.calls import assert_problem, row_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
ECHO = "sample.tools.echo"
NEEDS_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@pytest.fixture
def callable_echo(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    enable(input_schema=NEEDS_TEXT, output_schema=NEEDS_TEXT)
    grant()


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], dict[tuple[Any, ...], Any]]]:
    """``measured()``: what left as metrics, by name and the attributes that are words."""
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("tests")
    monkeypatch.setattr(telemetry, "get_meter", lambda: meter)
    call_metrics.get_call_instruments.cache_clear()

    def read() -> dict[tuple[Any, ...], Any]:
        data = reader.get_metrics_data()
        assert data is not None
        found = {}
        for metric in data.resource_metrics[0].scope_metrics[0].metrics:
            for point in metric.data.data_points:
                words = dict(point.attributes or {})
                words.pop("toolhub.tenant", None)
                found[metric.name, *(str(words[key]) for key in sorted(words))] = point
        return found

    yield read
    call_metrics.get_call_instruments.cache_clear()


def breaks(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("canary-5f3a")


# What nobody had thought of.


@pytest.mark.unmapped
@pytest.mark.req("TOOLS-24")
def test_an_exception_that_nobody_had_thought_of_is_counted_and_shown_to_people(
    caller: Caller, operator: Person, monkeypatch: pytest.MonkeyPatch, measured: Callable[[], dict[Any, Any]]
) -> None:
    monkeypatch.setattr("registry.tools.api.discovery_selectors", None)

    for _ in range(2):
        assert_problem(caller.get("/tools"), 500, "UNKNOWN.INTERNAL")

    (row,) = Unmapped.objects.all()
    assert (row.place, row.error, row.count) == ("problems", "AttributeError", 2)
    page = operator.client().get("/").content.decode()
    assert "AttributeError" in page
    assert "Too many unknown errors" in page
    assert measured()["toolhub.unmapped", "AttributeError", "problems"].value == 2


@pytest.mark.unmapped
@pytest.mark.req("TOOLS-24")
def test_a_call_that_broke_in_the_worker_raises_the_alarm_and_is_counted_once(
    caller: Caller, operator: Person, callable_echo: None, sandbox: ScriptedSandbox
) -> None:
    sandbox.during = breaks

    answer = caller.invoke(ECHO, {"text": "a"})

    assert_problem(answer, 500, "UNKNOWN.INTERNAL")
    assert [(found.place, found.error) for found in list_unmapped_since(timezone.now())] == [
        ("worker", "ZeroDivisionError")
    ]
    now = measure_health(Invocation.objects.all(), timezone.now())
    assert (now.results, now.unknown, now.is_alarming) == (1, 1, True)
    page = operator.client().get("/").content.decode()
    assert "Too many unknown errors" in page
    assert "canary-5f3a" not in page


@pytest.mark.unmapped
def test_a_process_that_sets_its_logs_up_once_more_goes_on_counting() -> None:
    """As Celery's worker does."""
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)

    logging.getLogger("toolhub.worker").error("for a test", exc_info=ZeroDivisionError("canary-5f3a"))

    row = Unmapped.objects.get()
    assert (row.place, row.error, row.count) == ("worker", "ZeroDivisionError", 1)


def test_what_went_wrong_is_counted_by_the_hour_and_forgotten_after_a_month() -> None:
    now = timezone.now().replace(minute=30)
    long_ago = now - timedelta(days=31)

    note_unmapped(place="worker", error="KeyError", now=long_ago)
    for minutes in (0, 5, 60):
        note_unmapped(place="worker", error="KeyError", now=now + timedelta(minutes=minutes))

    assert sorted(Unmapped.objects.values_list("count", flat=True)) == [1, 2]
    (found,) = list_unmapped_since(now)
    assert (found.times, found.latest) == (3, now + timedelta(hours=1))


@pytest.mark.parametrize(
    ("since", "now", "found"),
    [("10:00", "11:40", 6), ("10:45", "11:40", 3), ("10:59", "11:40", 3), ("10:30", "10:40", 1), ("11:10", "11:40", 2)],
)
def test_answers_of_an_hour_that_has_begun_before_are_counted_for_their_part(since: str, now: str, found: int) -> None:
    def at(time: str) -> datetime:
        return datetime.fromisoformat(f"2026-01-01T{time}:00+00:00")

    for time in ("10:05", "10:10", "10:20", "10:39", "11:05", "11:30"):
        if time < now:
            note_unmapped(place=ANSWERS, error="KeyError", now=at(time))
    note_unmapped(place="worker", error="KeyError", now=at(now))

    assert answers_since(at(since), at(now)) == found


@pytest.mark.req("TOOLS-24")
@pytest.mark.parametrize(
    ("results", "unknown", "alarms"), [(1000, 1, False), (1000, 2, True), (1, 1, True), (0, 0, False)]
)
def test_more_than_one_unknown_error_in_a_thousand_results_alarms(results: int, unknown: int, alarms: bool) -> None:
    found = CallHealth(results=results, unknown=unknown, runs=0, inputs_checked=0, values=0, outputs_checked=0)

    assert found.is_alarming is alarms


def test_errors_with_a_name_do_not_alarm(
    caller: Caller, operator: Person, callable_echo: None, sandbox: ScriptedSandbox
) -> None:
    sandbox.outcome = RunOutcome(RunStatus.RAISED, error_type="ValueError")

    caller.invoke(ECHO, {"text": "a"})
    caller.invoke(ECHO, {})

    page = operator.client().get("/").content.decode()
    assert "Too many unknown errors" not in page
    assert 'href="/errors/TOOL.EXECUTION_FAILED"' in page


# Whether every value was held against its schema.


@pytest.mark.req("TOOLS-27")
def test_every_value_that_goes_in_or_out_was_held_against_its_schema(
    caller: Caller, callable_echo: None, sandbox: ScriptedSandbox, measured: Callable[[], dict[Any, Any]]
) -> None:
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": "a"}, report={})
    good = row_of(caller.invoke(ECHO, {"text": "a"}))
    refused = row_of(caller.invoke(ECHO, {"text": 1}))
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": 1}, report={})
    wrong = row_of(caller.invoke(ECHO, {"text": "a"}))

    assert [(row.input_valid, row.output_valid) for row in (good, refused, wrong)] == [
        (True, True),
        (False, None),
        (True, False),
    ]
    found = measure_health(Invocation.objects.all(), timezone.now())
    assert (found.runs, found.inputs_checked, found.values, found.outputs_checked, found.unchecked) == (2, 2, 1, 1, 0)
    counted = measured()
    assert counted["toolhub.schema.validations", "input", "True"].value == 2
    assert counted["toolhub.schema.validations", "input", "False"].value == 1
    assert counted["toolhub.schema.validations", "output", "True"].value == 1
    assert counted["toolhub.schema.validations", "output", "False"].value == 1


@pytest.mark.req("TOOLS-27")
@pytest.mark.parametrize("field", ["input_valid", "output_valid"])
def test_a_value_that_no_schema_was_asked_about_is_seen(
    field: str, caller: Caller, operator: Person, callable_echo: None
) -> None:
    caller.invoke(ECHO, {"text": "a"})

    Invocation.objects.update(**{field: None})

    assert measure_health(Invocation.objects.all(), timezone.now()).unchecked == 1
    assert "Values that were not validated" in operator.client().get("/").content.decode()


# Metrics.


@pytest.mark.req("TOOLS-26")
def test_calls_denials_errors_durations_and_what_was_spent_leave_as_metrics(
    caller: Caller,
    callable_echo: None,
    sandbox: ScriptedSandbox,
    measured: Callable[[], dict[Any, Any]],
    django_capture_on_commit_callbacks: Any,
) -> None:
    sandbox.outcome = RunOutcome(RunStatus.OK, value={"text": "a"}, report={}, result_bytes=12, cpu_ms=3.4)
    with django_capture_on_commit_callbacks(execute=True):
        caller.invoke(ECHO, {"text": "a"})
        caller.invoke(ECHO, {"text": 1})
        sandbox.outcome = RunOutcome(RunStatus.TIMED_OUT)
        caller.invoke(ECHO, {"text": "b"})

    counted = measured()

    assert counted["toolhub.calls", "False", ECHO, "succeeded"].value == 1
    assert counted["toolhub.calls", "False", ECHO, "denied"].value == 1
    assert counted["toolhub.calls", "False", ECHO, "timed_out"].value == 1
    assert counted["toolhub.calls.denied", ECHO, "SCHEMA.VALIDATION_FAILED"].value == 1
    assert counted["toolhub.calls.errors", "INVALID_ARGUMENT", ECHO, "SCHEMA.VALIDATION_FAILED"].value == 1
    assert counted["toolhub.calls.errors", "TIMEOUT", ECHO, "SANDBOX.TIMEOUT"].value == 1
    assert counted["toolhub.budget.spent", "calls", ECHO].value == 2
    assert counted["toolhub.budget.spent", "bytes", ECHO].value == 12
    duration = counted["toolhub.calls.duration", ECHO, "succeeded"]
    assert duration.count == sum(duration.bucket_counts) == 1
    assert duration.explicit_bounds == call_metrics.SECONDS


@pytest.mark.req("TOOLS-24", "TOOLS-26")
@pytest.mark.unmapped
def test_the_alarm_leaves_as_a_metric(
    caller: Caller, callable_echo: None, sandbox: ScriptedSandbox, measured: Callable[[], dict[Any, Any]]
) -> None:
    call_health.make_instruments()
    caller.invoke(ECHO, {"text": "a"})
    before = measured()["toolhub.alarms", "unknown_results"].value
    sandbox.during = breaks
    caller.invoke(ECHO, {"text": "b"})

    after = measured()

    assert (before, after["toolhub.alarms", "unknown_results"].value) == (0, 1)
    assert after["toolhub.results.unknown_share",].value == 0.5
    assert after["toolhub.alarms", "unchecked_values"].value == 0
