"""Sandbox page: who sees what of the sandboxes, and where do the numbers come from?"""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from access.roles import HUB_OWNERS
from invocations.models import SandboxHost
from invocations.sandbox.remote.sandbox import RemoteSandbox
from invocations.sandbox.stats import BoxView, SandboxSnapshot, WaitStats
from invocations.sandbox_hosts import reports
from kernel.observability import telemetry
from kernel.observability.telemetry import PROCESS

if TYPE_CHECKING:
    from access.models import Tenant
    from tests.conftest import Person

pytestmark = pytest.mark.django_db


def box(id: str, state: str, tenant: str = "", tool: str = "") -> BoxView:
    level = "fresh" if tenant else ""
    return BoxView(id, state, "usual", tenant, tool, level, age_s=61.0, idle_s=1.0, calls=7, memory_bytes=16 << 20)


def snapshot_of(*boxes: BoxView, **changes: Any) -> SandboxSnapshot:
    fields: dict[str, Any] = {
        "boxes": boxes,
        "states": {"creating": 0, "ready": 1, "loaded": 2, "loading": 0, "busy": 0, "retiring": 0},
        "max_boxes": 32,
        "memory_bytes": 48 << 20,
        "max_memory_bytes": 4 << 30,
        "ready": 1,
        "calls": {"fresh": {"ok": 12, "timed_out": 1}},
        "waits": WaitStats(count=13, sum_s=0.5, p50_ms=0.4, p95_ms=210.0, now=0),
        "cold_starts": 1,
        "refills": 3,
        "failed_starts": 0,
        "failed_refills": 0,
        "kills": {"timed_out": 1},
        "retired": {"dirty": 1},
        "breaker": "closed",
        "breaker_why": "",
        "breaker_wait_s": 0.0,
        "transports": {"": "socket"},
    }
    return SandboxSnapshot(**fields | changes)


@pytest.fixture
def reported(tenant: Tenant, foreign_tenant: Tenant) -> SandboxHost:
    snapshot = snapshot_of(
        box("blank0000001", "ready"),
        box("mine00000001", "loaded", str(tenant.pk), "sample.tools.mine"),
        box("theirs000001", "loaded", str(foreign_tenant.pk), "sample.tools.theirs"),
    )
    return SandboxHost.objects.create(name="host-1:42", seen_at=datetime.now(UTC), snapshot=snapshot.to_json())


@pytest.mark.req("SVC-6")
def test_a_tenant_sees_its_own_boxes_and_how_many_others_there_are(reported: SandboxHost, operator: Person) -> None:
    page = operator.client().get("/sandboxes").content.decode()

    assert "sample.tools.mine" in page
    assert "blank0000001" in page
    assert "theirs" not in page
    assert "1 box of another tenant is not shown." in page
    assert "timed_out 1" in page
    assert "dirty 1" in page


def test_who_manages_the_hub_sees_all_with_their_tenants(reported: SandboxHost, operator: Person) -> None:
    operator.user.groups.add(Group.objects.get_or_create(name=HUB_OWNERS)[0])

    page = operator.client().get("/sandboxes").content.decode()

    assert "sample.tools.theirs" in page
    assert "Foreign" in page


def test_an_engine_that_fails_is_said_first(reported: SandboxHost, operator: Person) -> None:
    failing = snapshot_of(breaker="open", breaker_why="No Docker engine answers at unix:///nowhere.")
    SandboxHost.objects.update(snapshot=failing.to_json())

    page = operator.client().get("/sandboxes").content.decode()
    assert "The container engine of host-1:42 is failing" in page
    assert "unix:///nowhere" not in page  # paths of a host are for who runs it

    operator.user.groups.add(Group.objects.get_or_create(name=HUB_OWNERS)[0])
    assert "No Docker engine answers at unix:///nowhere." in operator.client().get("/sandboxes").content.decode()


def test_who_has_not_reported_for_a_while_is_not_shown(reported: SandboxHost, operator: Person) -> None:
    SandboxHost.objects.update(seen_at=datetime.now(UTC) - timedelta(minutes=1))

    page = operator.client().get("/sandboxes").content.decode()

    assert "host-1:42" not in page
    assert "No worker reports sandboxes" in page


def test_a_process_reports_what_it_has_and_the_long_gone_are_forgotten(
    reported: SandboxHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ours:
        def snapshot(self) -> SandboxSnapshot:
            return snapshot_of()

    monkeypatch.setattr(reports, "current_sandbox", Ours)
    now = datetime.now(UTC)
    SandboxHost.objects.update(seen_at=now - timedelta(hours=2))

    reports.write_report(now)

    [(row, snapshot)] = reports.list_hosts(now)
    assert row.name == PROCESS
    assert snapshot == snapshot_of()
    assert not SandboxHost.objects.filter(name="host-1:42").exists()


@pytest.mark.req("SVC-6")
def test_a_host_of_another_version_is_shown_as_far_as_it_is_understood(reported: SandboxHost, operator: Person) -> None:
    newer = reported.snapshot | {"new_figure": 1, "waits": {"new": 1, "now": 2}, "boxes": [{"id": "mine2", "new": 1}]}
    del newer["retired"], newer["breaker"]
    SandboxHost.objects.create(name="host-2:7", seen_at=datetime.now(UTC), snapshot=newer)
    SandboxHost.objects.create(name="host-3:7", seen_at=datetime.now(UTC), snapshot={})

    answer = operator.client().get("/sandboxes")

    page = answer.content.decode()
    assert answer.status_code == 200
    assert all(name in page for name in ("host-1:42", "host-2:7", "host-3:7", "mine2"))
    assert answer.context["waiting"] == 2


@pytest.mark.unmapped
@pytest.mark.django_db(transaction=True)
def test_a_host_goes_on_reporting_after_whatever_went_wrong(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()
    written: list[bool] = []

    class Ours:
        looks = 0

        def snapshot(self) -> SandboxSnapshot:
            Ours.looks += 1
            if Ours.looks == 1:
                raise RuntimeError("a figure that cannot be had")
            stop.set()
            return snapshot_of()

    def report(now: datetime) -> None:
        really(now)
        written.append(SandboxHost.objects.filter(name=PROCESS).exists())

    really = reports.write_report
    monkeypatch.setattr(reports, "write_report", report)
    monkeypatch.setattr(reports, "current_sandbox", Ours)
    monkeypatch.setattr(reports, "EVERY_S", 0)

    reports.run_reporter(stop)

    assert written == [True]
    assert "a figure that cannot be had" in caplog.text
    assert not SandboxHost.objects.filter(name=PROCESS).exists()


def test_the_same_numbers_leave_as_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ours:
        def snapshot(self) -> SandboxSnapshot:
            return snapshot_of()

    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("tests")
    monkeypatch.setattr(reports, "current_sandbox", Ours)
    monkeypatch.setattr(telemetry, "get_meter", lambda: meter)

    reports.make_instruments()

    data = reader.get_metrics_data()
    assert data is not None
    found = {
        (metric.name, *sorted(point.attributes.values(), key=str)): point.value  # type: ignore[union-attr]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
    }
    assert found["toolhub.sandbox.boxes", "loaded"] == 2
    assert found["toolhub.sandbox.calls", "fresh", "ok"] == 12
    assert found["toolhub.sandbox.kills", "timed_out"] == 1
    assert found["toolhub.sandbox.waited",] == 0.5


@pytest.mark.req("OPS-1")
def test_each_sandbox_host_is_reported_by_its_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"tls://boxes-1:8443": snapshot_of(), "tls://boxes-2:8443": snapshot_of(max_boxes=8)}
    sandbox = RemoteSandbox([], load_s=60)
    monkeypatch.setattr(sandbox, "_look", lambda: found)
    monkeypatch.setattr(reports, "current_sandbox", lambda: sandbox)
    now = datetime.now(UTC)

    reports.write_report(now)

    assert {host.name: snapshot for host, snapshot in reports.list_hosts(now)} == found
    together = sandbox.snapshot()
    assert together is not None
    assert (together.max_boxes, together.states["ready"], together.waits.count) == (40, 2, 26)
    assert together.calls == {"fresh": {"ok": 24, "timed_out": 2}}
