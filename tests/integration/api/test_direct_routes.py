"""Direct routes: does a call get the same answer by the door and past the request middleware of browsers, byte for byte?"""

from __future__ import annotations

import re
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.test import Client, RequestFactory
from django.urls import get_resolver
from opentelemetry.instrumentation.django.middleware.otel_middleware import _DjangoMiddleware
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id

from access.authentication.bearer import ApiKeyAuthentication
from invocations.api import ToolInvokeView
from kernel.http.deferred_responses import Handler
from kernel.http.direct_routes import find_direct_route
from tests.support.request_ways import WAYS, build_scope, take_direct_routes, take_way, take_whole_way
from tests.support.routes import Route, routes, walk
from toolhub.call_door import CallDoor

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from tests.conftest import Caller
    from tests.support.calls import Bell

pytestmark = pytest.mark.django_db
INVOKE = "/api/v1/tools/sample.tools.echo/invoke"
BROWSERS_ONLY = {
    "kernel.http.compression.PageCompression": "compresses pages",
    "kernel.http.assets.Assets": "serves static files",
    "csp.middleware.CSPMiddleware": "its header is written by kernel.http.direct_routes",
    "django.contrib.sessions.middleware.SessionMiddleware": "keys have no sessions",
    "django.middleware.locale.LocaleMiddleware": "what it does for addresses without languages is in kernel.http.direct_routes",
    "django.middleware.csrf.CsrfViewMiddleware": "a key is sent by no browser by itself",
    "django.contrib.auth.middleware.AuthenticationMiddleware": "keys are of agents",
    "django.contrib.messages.middleware.MessageMiddleware": "pages show messages",
    "django_htmx.middleware.HtmxMiddleware": "pages have fragments",
    "access.middleware.attach_principal": "people act for tenants that they choose",
    "kernel.http.middleware.Problems": "what a view raises is mapped by kernel.http.direct_routes.ask_view",
    "allauth.account.middleware.AccountMiddleware": "people sign in",
}
# What is another one in each answer: ids, times and what holds them.
_OWN = re.compile(
    r"test-request-\d+|\d+(?:\.\d+)?(?= ms)|(?<=ms\": )[0-9.]+|(inv|fct|snp|con)_[0-9a-z]{26}"
    r"|\d{4}-\d\d-\d\dT[0-9:.]+(?:\+00:00|Z)|[0-9a-f]{64}|[0-9a-f]{32}"
)


def body(**more: Any) -> dict[str, Any]:
    return {
        "request_id": "test-request-1",
        "actor": {"type": "agent", "id": "a"},
        "arguments": {"text": "x"},
    } | more


def ask(caller: Caller, path: str, sent: Any, headers: dict[str, str]) -> tuple[int, list[tuple[str, str]], str]:
    """Status, headers in their order and text of the answer, without what is another one each time."""
    asked = caller.headers() | {"X-Request-Id": "test-request-of-both"} | headers
    kind = asked.pop("Content-Type", "application/json")
    answer = Client().post(path, sent, content_type=kind, headers={name: text for name, text in asked.items() if text})
    assert answer.headers.get("Content-Length", str(len(answer.content))) == str(len(answer.content))
    said = [(name, _OWN.sub("…", text)) for name, text in answer.items() if name != "Content-Length"]
    return answer.status_code, said, _OWN.sub("…", answer.content.decode())


REQUESTS: dict[str, tuple[str, Any, dict[str, str]]] = {
    "a call": (INVOKE, body(), {}),
    "a call that is fetched later": (INVOKE, body(), {"Prefer": "respond-async"}),
    "a call that may not be made": ("/api/v1/tools/sample.tools.none/invoke", body(), {"Idempotency-Key": "a"}),
    "keys that differ": (INVOKE, body(idempotency_key="a"), {"Idempotency-Key": "b"}),
    "a key that cannot be": (INVOKE, body(), {"Idempotency-Key": "a b"}),
    "a preference that cannot be": (INVOKE, body(), {"Prefer": "wait=never"}),
    "a request id that is not harmless": (INVOKE, body(request_id="a b"), {}),
    "no key": (INVOKE, body(), {"Authorization": ""}),
    "a wrong key": (INVOKE, body(), {"Authorization": "Bearer hub_wrong"}),
    "no JSON": (INVOKE, "{", {}),
    "NaN": (INVOKE, '{"arguments": NaN}', {}),
    "a NUL in the body": (INVOKE, r'{"request_id": "\u0000"}', {}),
    "another kind of body": (INVOKE, "x=1", {"Content-Type": "application/x-www-form-urlencoded"}),
    "nothing": (INVOKE, "", {}),
    "a body that is too large": (INVOKE, " " * (1024 * 1024 + 1), {}),
    "an unknown field": (INVOKE, body(other=1), {}),
    "an unknown tool": ("/api/v1/tools/sample.tools.none/invoke", body(), {}),
    "arguments that do not fit": (INVOKE, body(arguments={"text": 1}), {}),
    "a NUL in the address": ("/api/v1/tools/a%00b/invoke", body(), {}),
    "a NUL in the query": (f"{INVOKE}?a=%00", body(), {}),
    "a NUL in a cookie": (INVOKE, body(), {"Cookie": 'theme="abc\\000d"'}),
    "a parameter": (f"{INVOKE}?a=b", body(), {}),
    "another host": (INVOKE, body(), {"Host": "else.example"}),
    "an answer that is no JSON": (INVOKE, body(), {"Accept": "text/html"}),
    "another version of the API": (INVOKE, body(), {"Toolhub-Version": "1999-01-01"}),
    "a condition": (INVOKE, body(), {"If-Match": '"a"'}),
    "another language": (INVOKE, body(), {"Accept-Language": "zh-hans"}),
    "another language in a cookie": (INVOKE, body(), {"Cookie": "django_language=zh-hans"}),
    "a browser's cookies": (
        INVOKE,
        body(),
        {"Cookie": "sessionid=abcdefgh; csrftoken=abcdefghijklmnopqrstuvwxyz012345; messages=a"},
    ),
    "HTMX": (INVOKE, body(other=1), {"HX-Request": "true"}),
    "a slash too many": (f"{INVOKE}/", body(), {}),
    "a preflight": ("/api/v1/tools/sample.tools.echo/preflight", body(), {}),
    "a proposal": ("/api/v1/proposals", body(), {}),
    "a dispatch without an answer": ("/api/v1/dispatch", body(), {}),
    "a chain without steps": ("/api/v1/chains", body(), {}),
    "a model that is none": ("/api/v1/models/none/chat", body(), {}),
    "a served format": ("/v1/chat/completions", body(), {}),
    "a served format without a key": ("/v1/chat/completions", body(), {"Authorization": ""}),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_all_ways_answer_alike(
    name: str,
    caller: Caller,
    enable: Callable[..., Any],
    grant: Callable[..., Any],
    bell: Bell,
    scripted: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    enable()
    grant()
    path, sent, headers = REQUESTS[name]

    answers = []
    for number, way in enumerate(WAYS):
        take_way(way, monkeypatch)
        own = isinstance(sent, dict) and sent.get("request_id") == "test-request-1"
        answers.append(ask(caller, path, sent | {"request_id": f"test-request-{number}"} if own else sent, headers))

    assert answers[0] == answers[1] == answers[2]
    assert {"X-Content-Type-Options", "Toolhub-Version"} & {name for name, _ in answers[0][1]}


@pytest.mark.unmapped
def test_both_ways_answer_alike_to_what_a_view_breaks_by(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ToolInvokeView, "finalize_response", break_)
    take_direct_routes(monkeypatch)

    direct = ask(caller, INVOKE, body(), {})
    take_whole_way(monkeypatch)
    whole = ask(caller, INVOKE, body(), {})

    assert direct == whole
    assert direct[0] == 500


def test_over_https_both_ways_say_that_it_stays_so(
    caller: Caller, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SECURE_HSTS_SECONDS, settings.SECURE_SSL_REDIRECT = 60, True

    def answers() -> list[Any]:
        named = {"X-Request-Id": "test-request-of-both"}
        found = [
            Client().post(INVOKE, "{", content_type="application/json", secure=secure, headers=named)
            for secure in (True, False)
        ]
        return [(each.status_code, list(each.items()), each.content) for each in found]

    door = answers()
    take_direct_routes(monkeypatch)
    direct = answers()
    take_whole_way(monkeypatch)

    assert door == direct == answers()
    assert ("Strict-Transport-Security", "max-age=60") in direct[0][1]
    assert direct[1][0] == 301


def test_telemetry_stands_before_both_ways(instrumented: None, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    begin_span = _DjangoMiddleware.process_request

    def note(middleware: Any, request: HttpRequest) -> Any:
        seen.append(request.path)
        return begin_span(middleware, request)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(_DjangoMiddleware, "process_request", note)

    for way in WAYS:
        take_way(way, monkeypatch)
        ask(caller, INVOKE, "{", {})

    assert seen == [INVOKE] * 3


@pytest.mark.parametrize("path", [INVOKE, "/api/v1/dispatch"])
def test_the_door_leaves_the_span_that_a_direct_route_leaves(
    path: str, instrumented: None, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(_DjangoMiddleware, "_tracer", provider.get_tracer("tests"))
    request = RequestFactory().post(path, "{", content_type="application/json", headers=caller.headers())
    handler = Handler(1)
    door = CallDoor(handler)

    def by_door(scope: dict[str, Any]) -> HttpResponseBase:
        found = door.find_call(scope)
        assert found is not None
        return door.answer(scope, found, b"{")

    traces = []
    for respond in (by_door, lambda scope: handler.get_response(ASGIRequest(scope, BytesIO(b"{")))):
        answer = respond(build_scope(request))
        (span,) = spans.get_finished_spans()
        spans.clear()
        traces.append((answer.status_code, span.name, span.kind, dict(span.attributes or {}), span.status))
        assert answer.headers["traceparent"].split("-")[2] == format_span_id(span.context.span_id)

    assert traces[0] == traces[1]
    assert traces[0][0] == 400
    assert traces[0][3]


def direct_routes() -> list[Route]:
    return list(walk(get_resolver(settings.DIRECT_URLCONF), ""))


def test_what_takes_calls_has_a_direct_route_and_nothing_else_has() -> None:
    taking = {route.path: route.view for route in routes() if getattr(route.api_class, "takes_calls", False)}

    assert {route.path: route.view for route in direct_routes()} == taking
    assert "api/v1/tools/<str:tool_id>/invoke" in taking


def test_no_session_speaks_at_a_direct_route() -> None:
    """Its cookies would be believed without a look at the form's token."""
    kinds = {kind for route in direct_routes() for kind in route.api_class.authentication_classes}

    assert {each for each in kinds if not issubclass(each, ApiKeyAuthentication)} == set()


def test_direct_routes_lose_of_the_request_middleware_what_only_browsers_need() -> None:
    kept = [name for name in settings.MIDDLEWARE if name not in BROWSERS_ONLY]

    assert set(settings.MIDDLEWARE) >= set(BROWSERS_ONLY)
    assert [name for name in settings.DIRECT_MIDDLEWARE if "direct_routes" not in name] == kept


@pytest.mark.parametrize(
    ("method", "path", "is_direct"),
    [
        ("POST", INVOKE, True),
        ("GET", INVOKE, False),
        ("POST", "/api/v1/tools", False),
        ("POST", "/v1/chat/completions", True),
        ("POST", f"{INVOKE}/", False),
        ("POST", "/invocations", False),
    ],
)
def test_only_what_makes_a_call_takes_the_short_way(method: str, path: str, is_direct: bool) -> None:
    assert (find_direct_route(RequestFactory().generic(method, path)) is not None) is is_direct
