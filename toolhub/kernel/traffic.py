"""Traffic: a span and a measurement of each request, from its arrival to the last byte of its answer.

Measured around everything, on the event loop: a request whose caller waits without a thread (toolhub.kernel.waiting) is not over
when its view has returned. Labels are words of closed sets; what callers choose, an address or a method, is in none of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode

from toolhub.kernel import names, telemetry
from toolhub.kernel.access_log import told
from toolhub.kernel.ids import request_id_for
from toolhub.kernel.log_context import logged_as
from toolhub.kernel.once import Once

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.metrics import Histogram, UpDownCounter

    from toolhub.kernel.bodies import Application, Message, Receive, Send

ROUTE = "toolhub.route"  # in a scope: the address as the hub knows it, set by whoever knew the request's
UNMATCHED = "(unmatched)"
STATIC = "static/<path>"
OTHER = "_OTHER"
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class _Instruments:
    def __init__(self) -> None:
        meter = telemetry.meter()
        self.duration: Histogram = meter.create_histogram(
            names.METRIC_REQUESTS,
            unit="s",
            description="From the arrival of a request to the end of its answer",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self.active: UpDownCounter = meter.create_up_down_counter(
            names.METRIC_REQUESTS_ACTIVE, description="Requests that are not answered yet"
        )


@Once
def instruments() -> _Instruments:
    return _Instruments()


def _labels(scope: Message, status: int) -> dict[str, Any]:
    """A method that the address does not take is nobody's word for anything either: 405."""
    method = scope["method"]
    route = scope.get(ROUTE) or (STATIC if status < 400 and scope["path"].startswith("/static/") else UNMATCHED)
    known = method in METHODS and status != 405 and route != UNMATCHED
    return {
        names.ATTR_METHOD: method if known else OTHER,
        names.ATTR_ROUTE: route,
        names.ATTR_STATUS: status,
    }


class _Measured:
    """One request."""

    def __init__(self, scope: dict[str, Any], send: Send) -> None:
        self._scope, self._send = scope, send
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)

    def end(self, span: trace.Span, started: float) -> None:
        """Without a status: the caller has gone before there was an answer, which proxies write as 499."""
        labels = _labels(self._scope, self.status or 499)
        instruments().duration.record(time.perf_counter() - started, labels)
        span.update_name(f"{labels[names.ATTR_METHOD]} {labels[names.ATTR_ROUTE]}")
        span.set_attributes(labels)
        if self.status >= 500:
            span.set_status(Status(StatusCode.ERROR))


def measured(application: Application) -> Application:
    async def guarded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request, started = _Measured(scope, send), time.perf_counter()
        instruments().active.add(1)
        try:
            with (
                logged_as(request_id=request_id_for(carrier.get(names.HEADER_REQUEST_ID.lower(), ""))),
                telemetry.tracer.start_as_current_span(
                    scope["method"] if scope["method"] in METHODS else OTHER,
                    context=extract(carrier),
                    kind=SpanKind.SERVER,
                    attributes={"url.path": told(scope["path"]), "url.scheme": scope.get("scheme", "http")},
                ) as span,
            ):
                try:
                    await application(scope, receive, request.send)
                except Exception:
                    request.status = request.status or 500  # what the server answers then
                    raise
                finally:
                    request.end(span, started)
        finally:
            instruments().active.add(-1)

    return guarded
