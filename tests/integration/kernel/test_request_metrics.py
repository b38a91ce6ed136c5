"""Request metrics: is a request measured for as long as it lasts, and can nobody make labels out of what they send?"""

from __future__ import annotations

import asyncio
import secrets
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from django.http import HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.http import require_GET
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry, generate_latest

from invocations.answer.wake_ups import InProcessWaker
from invocations.metrics import call_metrics
from kernel.http import traffic
from kernel.http.body_limits import limit_bodies
from kernel.http.deferred_responses import Handler, WaitingResponse
from kernel.http.traffic import FRONT, OTHER, REFUSED, UNMATCHED, measure_requests
from kernel.ids import new_id
from kernel.observability import telemetry
from kernel.observability.telemetry import MAX_SERIES, current_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.http import HttpRequest
    from opentelemetry.sdk.trace import ReadableSpan

TRACE = "0af7651916cd43dd8448eb211c80319c"
MANY = 5_000
waker = InProcessWaker()
THING = new_id()
begun, done = threading.Event(), threading.Event()


def invoke(request: HttpRequest, tool: str) -> HttpResponse:
    """As a call whose caller waits: there is an answer when the thing is done."""
    del tool
    listening = waker.listen(THING)
    waiter = listening.__enter__()
    traces = current_trace()

    def look(last: bool) -> HttpResponse | None:
        return JsonResponse(traces, status=200) if last or done.is_set() else None

    begun.set()
    return WaitingResponse(waiter, at_most_s=30, look=look, end=lambda: listening.__exit__(None, None, None))


@require_GET
def reads(request: HttpRequest) -> HttpResponse:
    return HttpResponse("x")


urlpatterns = [path("", reads), path("api/v1/tools/<str:tool>/invoke", invoke), path("reads", reads)]


@pytest.fixture(autouse=True)
def own_addresses(settings: Any) -> None:
    settings.ROOT_URLCONF = settings.DIRECT_URLCONF = __name__
    settings.MIDDLEWARE = settings.DIRECT_MIDDLEWARE = []
    begun.clear()
    done.clear()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], dict[tuple[Any, ...], Any]]]:
    """``read(name)``: the points of a metric by the values of their labels."""
    reader = InMemoryMetricReader(cardinality_limits=telemetry.LIMITS)
    meter = MeterProvider([reader]).get_meter("tests")
    monkeypatch.setattr(telemetry, "get_meter", lambda: meter)
    for each in (call_metrics.get_call_instruments, traffic.get_request_instruments):
        each.cache_clear()

    def points(name: str) -> dict[tuple[Any, ...], Any]:
        data = reader.get_metrics_data()
        assert data is not None
        found = (each for each in data.resource_metrics[0].scope_metrics[0].metrics if each.name == name)
        return {tuple((point.attributes or {}).values()): point for point in next(found).data.data_points}

    yield points
    for each in (call_metrics.get_call_instruments, traffic.get_request_instruments):
        each.cache_clear()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[ReadableSpan]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", provider.get_tracer("tests"))
    return lambda: list(exporter.get_finished_spans())


async def ask(application: Any, method: str, address: str, *headers: tuple[bytes, bytes]) -> int:
    """The status of the answer."""
    sent = iter([{"type": "http.request", "body": b"", "more_body": False}])
    statuses = []

    async def receive() -> Any:
        found = next(sent, None)
        if found is None:
            await asyncio.Event().wait()
        return found

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    scope = {"type": "http", "method": method, "path": address, "query_string": b"signature=ab", "scheme": "http"}
    await application(scope | {"headers": [(b"host", b"testserver"), *headers]}, receive, send)
    return int(statuses[0])


@pytest.mark.req("TOOLS-27")
def test_a_caller_that_waits_is_measured_until_its_answer(
    read: Callable[[str], Any], spans: Callable[[], list[ReadableSpan]]
) -> None:
    address = "/api/v1/tools/sample.tools.echo/invoke"

    async def story() -> int:
        application = measure_requests(Handler(1))
        parent = (b"traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())
        asked = asyncio.create_task(ask(application, "POST", address, parent))
        assert await asyncio.to_thread(begun.wait, 30)
        await asyncio.sleep(0)
        assert spans() == [], "the request is over before it is answered"
        done.set()
        waker.wake(THING)
        return await asked

    assert asyncio.run(story()) == 200

    (span,) = spans()
    assert span.name == "POST api/v1/tools/<str:tool>/invoke"
    assert span.context is not None
    assert format(span.context.trace_id, "032x") == TRACE
    assert dict(span.attributes or {})["url.path"] == "/api/v1/tools/sample.tools.echo/invoke"
    assert "signature" not in span.to_json()
    (point,) = read("http.server.request.duration").items()
    assert point[0] == ("POST", "api/v1/tools/<str:tool>/invoke", 200)
    assert point[1].count == 1
    assert sum(each.value for each in read("http.server.active_requests").values()) == 0


def test_neither_addresses_nor_methods_of_callers_become_labels(read: Callable[[str], Any]) -> None:
    async def story() -> None:
        application = measure_requests(Handler(1))
        for number in range(MANY):
            word = secrets.token_hex(8)
            method = ("GET", word.upper(), "DELETE", "POST")[number % 4]
            await ask(application, method, ("/reads", f"/{word}", f"/static/{word}")[number % 3])
        assert await ask(application, "GET", "/reads") == 200

    asyncio.run(story())

    assert set(read("http.server.request.duration")) == {
        ("GET", "reads", 200),
        (OTHER, "reads", 405),
        (OTHER, UNMATCHED, 404),
    }


def test_the_first_page_is_an_address_like_others(read: Callable[[str], Any]) -> None:
    async def story() -> None:
        application = measure_requests(limit_bodies(Handler(1)))
        assert await ask(application, "GET", "/") == 200
        assert await ask(application, "POST", "/", (b"content-length", b"99999999")) == 413

    asyncio.run(story())

    assert set(read("http.server.request.duration")) == {("GET", FRONT, 200), ("POST", FRONT, 413)}


def test_a_caller_who_went_and_one_who_was_refused_early_are_counted_where_they_asked(
    read: Callable[[str], Any],
) -> None:
    scope = {"type": "http", "method": "POST", "query_string": b"", "scheme": "http", "path": "/reads"}

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def nobody(message: Any) -> None:
        raise AssertionError(message)

    async def story() -> None:
        application = measure_requests(limit_bodies(Handler(1)))
        await application(scope | {"headers": [(b"host", b"testserver")]}, gone, nobody)
        await application(scope | {"headers": [(b"host", b"testserver")], REFUSED: 408}, gone, nobody)
        assert await ask(application, "POST", "/reads", (b"content-length", b"99999999")) == 413
        assert await ask(application, "POST", f"/{secrets.token_hex(8)}", (b"content-length", b"99999999")) == 413

    asyncio.run(story())

    assert set(read("http.server.request.duration")) == {
        ("POST", "reads", 499),
        ("POST", "reads", 408),
        ("POST", "reads", 413),
        (OTHER, UNMATCHED, 413),
    }


def ended_call(tool: str, *, known: bool) -> tuple[Any, Any]:
    problem = SimpleNamespace(code="NOT_FOUND", reason="TOOL.NOT_FOUND")
    call = SimpleNamespace(tenant_id=new_id(), tool=tool, version_id=1 if known else None, dry_run=False)
    return call, SimpleNamespace(state="denied", problem=problem, ran=False)


def test_names_of_tools_that_there_are_not_are_one_label(read: Callable[[str], Any]) -> None:
    for _ in range(MANY):
        call_metrics.count_call(*ended_call(f"x.{secrets.token_hex(8)}", known=False), 0.1)

    assert {labels[0] for labels in read("toolhub.calls.duration")} == {"(unknown)"}


def test_no_metric_has_more_series_than_its_bound_and_what_comes_beyond_is_counted(read: Callable[[str], Any]) -> None:
    for number in range(MANY):
        call_metrics.count_call(*ended_call(f"x.tool_{number}", known=True), 0.1)

    for name in ("toolhub.calls", "toolhub.calls.denied", "toolhub.calls.errors", "toolhub.calls.duration"):
        points = read(name)
        assert len(points) == MAX_SERIES + 1, name
        assert sum(getattr(point, "value", 0) or getattr(point, "count", 0) for point in points.values()) == MANY


def test_what_prometheus_reads_has_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = CollectorRegistry(auto_describe=False)
    monkeypatch.setattr("kernel.observability.exposition.REGISTRY", registry)
    counter = MeterProvider([telemetry._prometheus()]).get_meter("tests").create_counter("toolhub.x")

    for number in range(MANY):
        counter.add(1, {"agent": f"agt_{number}"})

    series = [line for line in generate_latest(registry).decode().splitlines() if line.startswith("toolhub_x_total{")]
    assert len(series) == MAX_SERIES + 1
