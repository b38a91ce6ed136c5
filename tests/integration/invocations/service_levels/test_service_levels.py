"""Service levels: are TOOLS-27 and its neighbours watched: one family of metrics, one page, and figures that are there when they
are 0?
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from invocations.metrics import call_metrics
from invocations.models import Attempt, Invocation
from invocations.sandbox.base import RunOutcome, RunStatus
from invocations.sandbox_hosts import reports
from invocations.service_levels import report as service_levels_report
from invocations.service_levels.call_health import WINDOW
from invocations.service_levels.pages import format_percent
from invocations.service_levels.report import (
    OBJECTIVES,
    SAMPLE,
    LatencyPercentiles,
    ServiceLevel,
    build_service_level_report,
    measure_preflight_ms,
)
from invocations.service_levels.unmapped_errors import ANSWERS, note_unmapped
from tests.integration.invocations.test_metrics import ECHO, scraped  # noqa: F401  a fixture
from tests.support.writes_between_reads import after_each_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
IN_A_BOX = RunOutcome(
    RunStatus.OK, value={"text": "a"}, report={}, box="box-1", image="toolhub-sandbox:1", level="fresh"
)


@pytest.fixture(autouse=True)
def _nothing_kept() -> Iterator[None]:
    service_levels_report.kept.forget()
    yield
    service_levels_report.kept.forget()


@pytest.fixture
def writer(enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox) -> None:
    """A tool with a side effect, whose runs are in a box."""
    enable(side_effect="Read")
    grant()
    sandbox.outcome = IN_A_BOX


def level(name: str) -> ServiceLevel:
    report = build_service_level_report(Invocation.objects.all(), timezone.now())
    return next(each for each in report.levels if each.name == name)


@pytest.mark.req("TOOLS-26")
def test_every_level_is_there_before_the_first_call_and_so_are_queue_places_and_open_calls(
    db: None,
    scraped: Callable[[], dict[tuple[str, ...], float]],  # noqa: F811
) -> None:
    reports.make_instruments()

    found = scraped()

    for name, (_, least) in OBJECTIVES.items():
        assert found["toolhub_service_level", name] == 1.0
        assert found["toolhub_service_level_objective", name] == least
    for work_class in ("quick", "long"):
        assert found["toolhub_queue_length", work_class] == 0
    for state in ("held", "queued", "running"):
        assert found["toolhub_calls_open", state] == 0
    assert found["toolhub_worker_places", "running"] == 0
    assert found["toolhub_worker_places", "free"] == 5


@pytest.mark.req("TOOLS-17", "TOOLS-26", "TOOLS-27")
def test_a_call_is_measured_from_preflight_to_box(
    caller: Caller,
    writer: None,
    scraped: Callable[[], dict[tuple[str, ...], float]],  # noqa: F811
) -> None:
    assert caller.invoke(ECHO, {"text": "a"}, headers={"Idempotency-Key": "k-1"}).status_code == 200

    found = scraped()

    assert found["toolhub_preflight_duration_seconds_count", "true"] == 1
    buckets = [key for key in found if key[0] == "toolhub_preflight_duration_seconds_bucket"]
    assert len(buckets) == len(call_metrics.PREFLIGHT_SECONDS) + 1
    assert ("toolhub_preflight_duration_seconds_bucket", "true", "0.005") in buckets
    assert found["toolhub_queue_wait_seconds_count", "quick"] == 1
    assert found["toolhub_calls_side_effects_total", "true"] == 1
    assert found["toolhub_service_level", "paired_facts"] == 1.0


@pytest.mark.req("TOOLS-17", "TOOLS-26")
def test_a_run_with_a_side_effect_outside_a_box_is_a_level_that_is_missed(
    caller: Caller, writer: None, operator: Person
) -> None:
    for key in ("k-1", "k-2"):
        caller.invoke(ECHO, {"text": "a"}, headers={"Idempotency-Key": key})
    assert (level("boxed_side_effects").good, level("boxed_side_effects").all) == (2, 2)

    Attempt.objects.filter(pk=Attempt.objects.latest("pk").pk).update(image="direct")

    missed = level("boxed_side_effects")
    assert (missed.good, missed.all, missed.is_met, missed.state) == (1, 2, False, "level_missed")
    page = operator.client().get("/service-levels").content.decode()
    assert "Missed" in page
    assert "50 %" in page


@pytest.mark.req("TOOLS-17", "TOOLS-26")
def test_a_run_that_comes_to_its_box_while_the_level_is_read_is_not_one_outside(caller: Caller, writer: None) -> None:
    caller.invoke(ECHO, {"text": "a"}, headers={"Idempotency-Key": "k-1"})
    first = Attempt.objects.get()
    numbers = iter(range(first.number + 1, 1000))

    def run_another() -> None:
        Attempt.objects.create(
            invocation_id=first.invocation_id,
            number=next(numbers),
            box="box-2",
            image=first.image,
            started_at=first.started_at,
        )

    with after_each_read(run_another, of=Attempt._meta.db_table) as asked:
        found = level("boxed_side_effects")

    assert asked
    assert (found.good, found.is_met) == (found.all, True)


@pytest.mark.req("TOOLS-18", "TOOLS-24", "TOOLS-26")
def test_each_level_counts_what_is_not_as_it_must_be(caller: Caller, writer: None) -> None:
    caller.invoke(ECHO, {"text": "a"}, headers={"Idempotency-Key": "k-1"})
    call = Invocation.objects.get()

    slow = [step | {"end_ms": step["begin_ms"] + 6} for step in call.steps if step["name"] == "preflight.tool"]
    Invocation.objects.update(steps=slow, output_valid=None)

    assert level("fast_preflight").share == 0.0
    assert (level("schema_validation").good, level("schema_validation").all) == (1, 2)
    assert level("known_results").share == level("paired_facts").share == 1.0

    Invocation.objects.update(created_at=timezone.now() - WINDOW * 2)
    assert all(
        each.all == 0 and each.is_met
        for each in build_service_level_report(Invocation.objects.all(), timezone.now()).levels
    )


@pytest.mark.req("TOOLS-26")
def test_levels_are_of_the_newest_calls_and_of_the_answers_in_their_time(
    caller: Caller, writer: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("k-1", "k-2", "k-3"):
        caller.invoke(ECHO, {"text": "a"}, headers={"Idempotency-Key": key})
    oldest = Invocation.objects.earliest("pk")
    Invocation.objects.filter(pk=oldest.pk).update(reason="UNKNOWN.INTERNAL", output_valid=None)
    note_unmapped(place=ANSWERS, error="KeyError", now=timezone.now() - timedelta(hours=5))
    judged = {name: (level(name).good, level(name).all) for name in ("known_results", "schema_validation")}
    assert judged == {"known_results": (2, 4), "schema_validation": (5, 6)}

    monkeypatch.setattr(service_levels_report, "COUNTED", 2)

    judged = {name: (level(name).good, level(name).all) for name in ("known_results", "schema_validation")}
    assert judged == {"known_results": (2, 2), "schema_validation": (4, 4)}


@pytest.mark.req("TOOLS-27")
def test_the_time_that_a_person_took_to_decide_is_not_the_preflights() -> None:
    def step(name: str, begin: float, end: float) -> dict[str, Any]:
        return {"name": name, "begin_ms": begin, "end_ms": end}

    before = [step("preflight.tool", 0, 1), step("preflight.consent", 1, 2)]
    after = [step("preflight.tool", 3_600_000, 3_600_001), step("preflight.consent", 3_600_001, 3_600_003)]

    assert measure_preflight_ms([*before, *after, step("queue.wait", 3_600_003, 3_600_009)]) == 3
    assert measure_preflight_ms([*before, step("held", 2, 3_600_000), *after]) == 3
    assert measure_preflight_ms([step("queue.wait", 0, 1)]) is None


@pytest.mark.req("TOOLS-26")
def test_the_page_shows_the_levels_of_the_tenant_and_what_goes_on(
    caller: Caller, writer: None, bell: Bell, operator: Person
) -> None:
    page = operator.client().get("/service-levels").content.decode()
    assert page.count("No data") == len(OBJECTIVES)

    caller.invoke(ECHO, {"text": "a"}, headers={"Idempotency-Key": "k-1"})
    bell.answers = False
    caller.invoke(ECHO, {"text": "a"}, headers={"Idempotency-Key": "k-2", "Prefer": "respond-async"})

    page = operator.client().get("/service-levels").content.decode()
    assert f"the newest {SAMPLE:,} calls at most" in page
    report = build_service_level_report(Invocation.objects.visible_to(operator.by), timezone.now())
    assert (report.waiting, report.running, report.open) == (1, 0, 1)
    judged = {each.name: each.state for each in report.levels if each.name != "fast_preflight"}  # that is the machine's
    assert set(judged.values()) == {"level_met"}
    assert page.count("Met</span>") >= len(judged)
    assert report.preflight.p95_ms is not None
    assert report.queue.p95_ms is not None


@pytest.mark.req("TOOLS-26")
def test_a_share_is_never_rounded_up_to_the_whole() -> None:
    assert [format_percent(share) for share in (1.0, 0.99996, 0.999, 0.5, 0.0)] == ["100", "99.99", "99.9", "50", "0"]
    assert LatencyPercentiles.of(range(1, 101)) == LatencyPercentiles(50, 95)
    assert LatencyPercentiles.of([7.0]) == LatencyPercentiles(7.0, 7.0)
    assert LatencyPercentiles.of([]) == LatencyPercentiles(None, None)
