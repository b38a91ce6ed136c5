"""Traffic: a span and a measurement of each request, from its arrival to the last byte of its answer.

Measured around everything, on the event loop: a request whose caller waits without a thread (kernel.http.deferred_responses)
is not over
when its view has returned. Labels are words of closed sets; what callers choose, an address or a method, is in none of them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from django.urls import Resolver404, resolve
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode

from kernel import names
from kernel.ids import choose_request_id
from kernel.observability import telemetry
from kernel.observability.access_log import mask_path
from kernel.observability.log_context import bind_log_context
from kernel.singleton import Once

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.metrics import Histogram, UpDownCounter

    from kernel.http.body_limits import Application, Message, Receive, Send

ROUTE = "toolhub.route"  # in a scope: the address as the hub knows it, set by whoever knew the request's
REFUSED = "toolhub.refused"  # in a scope: the status that the connection has answered with, past the application
UNMATCHED = "(unmatched)"
FRONT = "/"  # of the hub's first page, whose address is empty: a label without letters is none
STATIC = "static/<path>"
OTHER = "_OTHER"
NOBODY = 499  # the caller has gone before there was an answer, as proxies write it
# Answered before Django has looked which address it is. Of others none is looked up: nobody shall be kept waiting by random ones.
EARLY = {401, 403, 408, 413, 429, 431, NOBODY}
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class _RequestInstruments:
    def __init__(self) -> None:
        meter = telemetry.get_meter()
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
def get_request_instruments() -> _RequestInstruments:
    return _RequestInstruments()


def _route_of(scope: Message, status: int) -> str:
    if (known := scope.get(ROUTE)) is not None:
        return str(known) or FRONT
    if scope["path"].startswith("/static/"):
        return STATIC if status < 400 else UNMATCHED
    if status not in EARLY:
        return UNMATCHED
    try:
        return resolve(scope["path"].removeprefix(scope.get("root_path", ""))).route or FRONT
    except Resolver404:
        return UNMATCHED


def _labels(scope: Message, status: int) -> dict[str, Any]:
    """A method that the address does not take is nobody's word for anything either: 405."""
    method, route = scope["method"], _route_of(scope, status)
    known = method in METHODS and status != 405 and route != UNMATCHED
    return {
        names.ATTR_METHOD: method if known else OTHER,
        names.ATTR_ROUTE: route,
        names.ATTR_STATUS: status,
    }


def count_refusal(status: int, seconds: float) -> None:
    """One that was refused while its head was read, so that no application has heard of it."""
    labels: dict[str, Any] = {names.ATTR_METHOD: OTHER, names.ATTR_ROUTE: UNMATCHED, names.ATTR_STATUS: status}
    get_request_instruments().duration.record(seconds, labels)


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
        """Without a status nothing was sent: the caller has gone, or was refused in the middle of the body."""
        labels = _labels(self._scope, self.status or self._scope.get(REFUSED, NOBODY))
        get_request_instruments().duration.record(time.perf_counter() - started, labels)
        span.update_name(f"{labels[names.ATTR_METHOD]} {labels[names.ATTR_ROUTE]}")
        span.set_attributes(labels)
        if self.status >= 500:
            span.set_status(Status(StatusCode.ERROR))


def measure_requests(application: Application) -> Application:
    async def guarded(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        request, started = _Measured(scope, send), time.perf_counter()
        get_request_instruments().active.add(1)
        try:
            with (
                bind_log_context(request_id=choose_request_id(carrier.get(names.HEADER_REQUEST_ID.lower(), ""))),
                telemetry.tracer.start_as_current_span(
                    scope["method"] if scope["method"] in METHODS else OTHER,
                    context=extract(carrier),
                    kind=SpanKind.SERVER,
                    attributes={"url.path": mask_path(scope["path"]), "url.scheme": scope.get("scheme", "http")},
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
            get_request_instruments().active.add(-1)

    return guarded
