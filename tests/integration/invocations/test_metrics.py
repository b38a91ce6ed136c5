"""Metrics: can Prometheus read what TOOLS-26 asks for, and nobody else?"""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import httpx2
import pytest
from django.test import Client
from django.utils import timezone
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client.parser import text_string_to_metric_families

from evidence.models import Anchor, Log, Pending, Seal, Verification
from evidence.sinks import services
from invocations.metrics import call_metrics, hub_gauges
from invocations.models import Invocation
from kernel.http import traffic
from kernel.observability import exposition, telemetry
from tests.support.asgi_application import application
from tests.support.evidence_logs import seal_everything, signing_with
from tests.support.mcp_clients import ring_in_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db(transaction=True)
ECHO = "sample.tools.echo"
TOKEN = "a-token-of-a-test"


@pytest.fixture
def scraped(monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Callable[[], dict[tuple[str, ...], float]]]:
    """``scraped()``: what a scrape of the web server says, by name and the labels that are words."""
    settings.TOOLHUB_METRICS_TOKEN = TOKEN
    provider = MeterProvider([PrometheusMetricReader(registry=exposition.REGISTRY, scope_info_enabled=False)])
    meter = provider.get_meter("tests")
    monkeypatch.setattr(telemetry, "get_meter", lambda: meter)
    made_once = (call_metrics.get_call_instruments, hub_gauges.make_instruments, traffic.get_request_instruments)
    for once in made_once:
        once.cache_clear()
    hub_gauges.make_instruments()

    def read() -> dict[tuple[str, ...], float]:
        answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        read.text = answer.content.decode()  # type: ignore[attr-defined]
        return {
            (sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "toolhub_tenant")): (
                sample.value
            )
            for family in text_string_to_metric_families(read.text)  # type: ignore[attr-defined]
            for sample in family.samples
        }

    yield read
    provider.shutdown()  # takes itself out of the registry
    for once in made_once:
        once.cache_clear()


@pytest.mark.req("TOOLS-26")
def test_a_call_whose_caller_waits_is_counted_with_its_answer_on_its_route(
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    scraped: Callable[[], dict[tuple[str, ...], float]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()
    ring_in_threads(bell, monkeypatch)  # whoever waits does so on the event loop, when the view has returned long ago
    body = {"request_id": "test-request-1", "actor": {"type": "agent", "id": "a"}, "arguments": {"text": "x"}}

    async def call() -> httpx2.Response:
        transport = httpx2.ASGITransport(cast("Any", application))
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver") as client:
            return await client.post(f"/api/v1/tools/{ECHO}/invoke", json=body, headers=caller.headers())

    answer = asyncio.run(call())

    assert (answer.status_code, answer.json()["data"]) == (200, {"text": "scripted"})
    counted = {key: value for key, value in scraped().items() if key[0] == "http_server_request_duration_seconds_count"}
    assert counted == {
        ("http_server_request_duration_seconds_count", "POST", "200", "api/v1/tools/<str:tool_id>/invoke"): 1
    }


@pytest.mark.req("TOOLS-26")
def test_a_scrape_has_calls_denials_errors_latency_and_what_was_spent(
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    scraped: Callable[[], dict[tuple[str, ...], float]],
) -> None:
    enable()
    caller.invoke(ECHO, {"text": "canary-7391"})
    grant()
    for _ in range(3):
        assert caller.invoke(ECHO, {"text": "canary-7391"}).status_code == 200

    found = scraped()

    assert found["toolhub_calls_total", "false", ECHO, "succeeded"] == 3
    assert found["toolhub_calls_total", "false", ECHO, "denied"] == 1
    [(_, _, reason)] = [key for key in found if key[0] == "toolhub_calls_denied_total"]
    assert found["toolhub_calls_errors_total", "FORBIDDEN", ECHO, reason] == 1
    assert found["toolhub_budget_spent_total", "calls", ECHO] == 3
    assert ("toolhub_budget_spent_total", "bytes", ECHO) in found
    buckets = {
        key[2]: value
        for key, value in found.items()
        if key[0] == "toolhub_calls_duration_seconds_bucket" and key[3] == "succeeded"
    }
    assert buckets["+Inf"] == 3, "a p95 can be computed of these"
    assert len(buckets) == len(call_metrics.SECONDS) + 1
    assert "canary-7391" not in scraped.text  # type: ignore[attr-defined]


@pytest.mark.req("TOOLS-26")
def test_the_figures_of_the_whole_hub_are_those_of_the_database(
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    bell: Bell,
    sandbox: ScriptedSandbox,
    operator: Person,
    settings: Any,
    tmp_path: Any,
    scraped: Callable[[], dict[tuple[str, ...], float]],
) -> None:
    settings.TOOLHUB_EVENTS_DIR = str(tmp_path)
    enable()
    grant()
    with signing_with():
        seal_everything()
        sealed = Log.objects.get(pk=operator.by.tenant_id).size
        services.make_sink(name="behind", channel="file", from_beginning=True, by=operator.by)
        bell.answers = False
        for _ in range(2):
            caller.invoke(ECHO, {"text": "a"}, headers={"Prefer": "respond-async"})
    now = timezone.now()
    Invocation.objects.filter(pk=Invocation.objects.latest("pk").pk).update(
        state="running", attempt=1, lease_until=now - timedelta(seconds=5)
    )
    Anchor.objects.create(name="w.example", kind="witness", next_attempt_at=now, refused_at=now)
    Verification.objects.create(tenant_id=operator.by.tenant_id, found=1, begun_at=now)

    found = scraped()

    assert found["toolhub_evidence_pending",] == Pending.objects.count() > 0
    assert found["toolhub_evidence_pending_age_seconds",] >= 0
    assert found["toolhub_evidence_sealed",] == Seal.objects.count()
    assert found["toolhub_evidence_checkpoint_age_seconds",] >= 0
    assert found["toolhub_evidence_verification_failures",] == 1
    assert found["toolhub_evidence_sink_lag",] == sealed
    assert found["toolhub_evidence_anchor_refused", "w.example"] == 1
    assert found["toolhub_evidence_anchor_age_seconds", "w.example"] > 1e6
    assert found["toolhub_queue_length", "quick"] == 1
    assert found["toolhub_queue_age_seconds", "quick"] >= 0
    assert found["toolhub_queue_age_seconds", "long"] == 0
    assert found["toolhub_leases", "overdue"] == 1
    Invocation.objects.filter(state="running").update(state="queued", attempt=0, lease_until=None)


@pytest.mark.req("TOOLS-26")
def test_without_the_token_nobody_reads_metrics(settings: Any) -> None:
    assert Client().get("/metrics").status_code == 404
    settings.TOOLHUB_METRICS_TOKEN = TOKEN

    for wrong in ("", "Bearer", "Bearer x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}é"):
        answer = Client().get("/metrics", headers={"Authorization": wrong})
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.req("TOOLS-26")
@pytest.mark.parametrize("bind", ["0.0.0.0:9464", "[::]:9464", "192.0.2.1:9464"])
def test_metrics_leave_their_host_with_a_token_only(bind: str, settings: Any) -> None:
    settings.TOOLHUB_METRICS_BIND = bind

    with pytest.raises(ValueError, match="TOOLHUB_METRICS_TOKEN"):
        exposition.serve_metrics()


@pytest.mark.req("TOOLS-26")
@pytest.mark.parametrize("token", ["", TOKEN])
def test_a_worker_and_a_keeper_serve_theirs_where_they_are_told(token: str, settings: Any) -> None:
    settings.TOOLHUB_METRICS_BIND, settings.TOOLHUB_METRICS_TOKEN = "127.0.0.1:0", token
    server = exposition.serve_metrics()
    assert server is not None
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        ask = urllib.request.Request(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(ask) as answer:
            assert answer.status == 200
        for path, sent in (("/metrics", {"Authorization": "Bearer wrong"}), ("/", {})):
            wanted = 404 if path == "/" else 401
            if token or path == "/":
                with pytest.raises(urllib.error.HTTPError) as refused:
                    urllib.request.urlopen(urllib.request.Request(url + path, headers=sent))
                assert refused.value.code == wanted
                refused.value.close()
    finally:
        server.shutdown()
        server.server_close()
