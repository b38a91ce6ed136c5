"""Telemetry: how it is seen from outside what a process does, by one trace from caller to tool, and metrics."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from opentelemetry import metrics, trace
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.metrics import (
    Counter,
    Histogram,
    MeterProvider,
    ObservableCounter,
    ObservableGauge,
    ObservableUpDownCounter,
    UpDownCounter,
)
from opentelemetry.sdk.metrics.export import CardinalityLimits, MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from kernel.observability import exposition
from kernel.observability.access_log import mask_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.context import Context

PROCESS = f"{socket.gethostname()}:{os.getpid()}"  # a process on its host, as people tell them apart
tracer = trace.get_tracer("toolhub")
# Series of one instrument in one process; what comes beyond is counted together, with the label `otel.metric.overflow`.
MAX_SERIES = 1_000
LIMITS: CardinalityLimits = {
    Counter: MAX_SERIES,
    Histogram: MAX_SERIES,
    UpDownCounter: MAX_SERIES,
    ObservableCounter: MAX_SERIES,
    ObservableGauge: MAX_SERIES,
    ObservableUpDownCounter: MAX_SERIES,
}


def get_meter() -> metrics.Meter:
    return metrics.get_meter("toolhub")


def setup_telemetry(service: str) -> None:
    """Start tracing for this process, once; spans and metrics leave it only when ``OTEL_EXPORTER_OTLP_ENDPOINT`` is set, metrics
    also when Prometheus may read them.

    Must run before Django builds its middleware chain. In the embedded default the first part that asks names the service.
    """
    if isinstance(trace.get_tracer_provider(), TracerProvider):
        return
    resource = Resource.create({"service.name": f"toolhub-{service}", "service.instance.id": PROCESS})
    provider = TracerProvider(resource=resource)
    readers: list[MetricReader] = [_prometheus()] if exposition.is_wanted() else []
    if os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        # They bring protobuf and an HTTP client of their own, of which a hub that sends nothing has no use.
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415

        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter(), cardinality_limits=LIMITS))
        # Within the span of a request (kernel.http.traffic), and not measured: a view has returned before its caller has an
        # answer. It costs each request some tenths of a millisecond, so only where somebody gets to see it.
        DjangoInstrumentor().instrument(
            request_hook=leave_out_query, response_hook=rename_view_span, meter_provider=NoOpMeterProvider()
        )
    if readers:
        metrics.set_meter_provider(MeterProvider(readers, resource=resource))
    trace.set_tracer_provider(provider)


def _prometheus() -> MetricReader:
    return PrometheusMetricReader(registry=exposition.REGISTRY, scope_info_enabled=False, cardinality_limits=LIMITS)


def leave_out_query(span: trace.Span, _: object) -> None:
    """A query may hold what stands for a key, the signature of a link; a path may hold words of the caller."""
    said: Mapping[str, object] = getattr(span, "attributes", None) or {}
    for name in ("http.url", "http.target", "url.full", "url.path", "url.query"):
        if name in said:
            url = urlsplit(str(said[name]))
            left = urlunsplit((url.scheme, url.netloc, mask_path(url.path), "", ""))
            span.set_attribute(name, "" if name == "url.query" else left)


def rename_view_span(span: trace.Span, *_: object) -> None:
    """Not that of the request: where a caller waits, this one ends with 202 before the answer."""
    span.update_name("view")


def current_trace() -> dict[str, str]:
    """W3C ``traceparent`` of the current span, to be stored with an invocation; empty when there is none."""
    carrier: dict[str, str] = {}
    inject(carrier)
    return carrier


def read_trace_id(carrier: Mapping[str, str]) -> str:
    """The 32 hex digits in a ``traceparent``; empty when there is none."""
    parts = carrier.get("traceparent", "").split("-")
    return parts[1] if len(parts) == 4 else ""


def extract_context(carrier: Mapping[str, str]) -> Context:
    return extract(carrier)
