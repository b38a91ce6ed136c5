"""Call door: how most calls over REST come in, past Django's handler and DRF's view.

It takes what makes a call (``invoke``, ``proposals``, ``dispatch``, the hub's own addresses of models) and has a plain head
(:mod:`kernel.http.plain_heads`), and hands everything else on. What it takes it puts to the functions that the view of that address
uses: key, body, call, answer, refusal and its count. What stands around a view is asked once, for such a request, and what that wrote
into its answer stands in each; telemetry's own middleware, where traces go somewhere, stands around the door. So the door decides
nothing of its own, and both answer alike, byte for byte (tests/integration/api/test_direct_routes.py).
"""

from __future__ import annotations

import re
from datetime import UTC
from functools import lru_cache, partial
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.http import HttpResponse
from django.urls import Resolver404, get_resolver, resolve
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.log import log_response
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from access.authentication.bearer import find_header_holder, resolve_header_principal
from invocations.accept.api import CallView
from invocations.accept.call_basis import BasisAhead
from invocations.api import ToolInvokeView, make_call
from invocations.request_tallies import answer_rejected
from invocations.serializers import read_call_body
from kernel.database.connections import release_connection
from kernel.database.tenancy import act_for, acting_for_nobody
from kernel.http.body_limits import read_whole_body
from kernel.http.deferred_responses import WaitingResponse
from kernel.http.direct_routes import METHOD, add_telemetry, build_direct_chain
from kernel.http.exception_handlers import API_PREFIX, build_problem_response, translate_exception
from kernel.http.parsers import StrictJSONParser
from kernel.http.plain_heads import read_plain_headers
from kernel.http.traffic import ROUTE
from kernel.ids import choose_request_id
from kernel.names import HEADER_REQUEST_ID
from kernel.observability.log_context import read_log_field
from kernel.observability.telemetry import current_trace
from kernel.problems import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http.response import HttpResponseBase

    from invocations.calls import CallRequest
    from kernel.http.body_limits import Receive, Send
    from kernel.http.deferred_responses import Handler
    from kernel.principal import Principal

ADDRESS = re.compile(rf"{API_PREFIX}v1/[A-Za-z0-9._/-]{{1,350}}")
MAX_KNOWN = 1024  # addresses
CONTENT_LENGTH, CONTENT_TYPE, VARY = "Content-Length", "Content-Type", "Vary"
_UNPREFIXED = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}


class DoorRoute(NamedTuple):
    """Who answers at an address, and what the address says."""

    view: type[CallView]
    said: Mapping[str, Any]


class DoorCall(NamedTuple):
    """What the door takes."""

    route: DoorRoute
    headers: Mapping[str, str]


@lru_cache(MAX_KNOWN)
def find_door_route(path: str) -> DoorRoute | None:
    """Of an address that takes calls with a key in the usual header. Whether the key may make them is decided with the call."""
    try:
        match = get_resolver(settings.DIRECT_URLCONF).resolve(path)
    except Resolver404:
        return None
    view = getattr(match.func, "cls", None)
    if view is None or not issubclass(view, CallView):
        return None
    if view.authentication_classes != CallView.authentication_classes:
        return None
    return DoorRoute(view, match.kwargs)


class DoorRequest(ASGIRequest):
    """As much of a request as anything asks of one with a plain head."""

    def __init__(self, scope: dict[str, Any], call: DoorCall, body: bytes) -> None:
        # Without Django's own, which makes what nobody on this way asks for.
        self.scope, self.call, self.sent = scope, call, body
        self.method, self.path, self.path_info = METHOD, scope["path"], scope["path"]
        self.META = {
            _UNPREFIXED.get(name) or f"HTTP_{name.upper().replace('-', '_')}": value
            for name, value in call.headers.items()
        }
        self.META["REMOTE_ADDR"] = (scope.get("client") or ("",))[0]
        self.request_id = read_log_field("request_id") or choose_request_id(
            call.headers.get(HEADER_REQUEST_ID.lower(), "")
        )
        self.resolver_match = None
        # For parsers of a view.
        self._stream, self._read_started = BytesIO(body), False


class CallDoor:
    """An ASGI application before ``handler``, whose threads it shares."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._respond = add_telemetry(self._answer)
        self._written: dict[tuple[str, type[CallView]], WrittenHeaders] = {}  # by the scheme of the request

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        found = self.find_call(scope) if scope["type"] == "http" else None
        if found is None:
            await self._handler(scope, receive, send)
        elif (body := await read_whole_body(receive)) is not None:
            await self._handler.serve(scope, receive, send, partial(self.answer, scope, found, body))

    def find_call(self, scope: Mapping[str, Any]) -> DoorCall | None:
        """None for what takes the other way."""
        if scope["method"] != METHOD or ADDRESS.fullmatch(scope["path"]) is None:
            return None
        headers = read_plain_headers(scope)
        if headers is None or (route := find_door_route(scope["path"])) is None:
            return None
        return DoorCall(route, headers)

    def answer(self, scope: dict[str, Any], call: DoorCall, body: bytes) -> HttpResponseBase:
        """In a thread, whose connection is given back at the end."""
        try:
            with acting_for_nobody(), timezone.override(UTC):
                return self._respond(DoorRequest(scope, call, body))
        finally:
            release_connection()

    def _answer(self, request: Any) -> HttpResponseBase:
        written = self._find_written(request)
        try:
            response = make_direct_call(request) if request.call.route.view is ToolInvokeView else ask_view(request)
        except Exception as error:  # noqa: BLE001  mapped and logged like what a view raises
            response = build_problem_response(request, translate_exception(error, request))
        if isinstance(response, WaitingResponse):
            response.request = request
        if response.status_code >= 400:
            said = cast("HttpResponse", response)
            log_response("%s: %s", said.reason_phrase, request.path, response=said, request=request)
        request.scope[ROUTE] = written.route
        written.write_into(response, request)
        return response

    def _find_written(self, request: DoorRequest) -> WrittenHeaders:
        name = request.scope.get("scheme", "http"), request.call.route.view
        if (found := self._written.get(name)) is None:
            found = self._written[name] = WrittenHeaders.record(request.scope, request.call.route.view)
        return found


def make_direct_call(request: DoorRequest) -> HttpResponse:
    """As ``ToolInvokeView``: who calls, what is called, what becomes of it."""
    by: Principal | None = None
    header = request.headers.get("Authorization", "")
    try:
        # What decides about the call of a known caller is asked with the key.
        early = _read_early(request) if connection.vendor == "postgresql" and find_header_holder(header) else None
        ahead = BasisAhead(early.tool, early.envelope.user_id) if early is not None else None
        by = resolve_header_principal(header, address=request.META["REMOTE_ADDR"], ahead=ahead)
        act_for(by.tenant_id)
        asked = Request(request)
        asked.user = by  # type: ignore[assignment]  # as authentication has it: here nobody but people are users
        return make_call(asked, early or _read_call(request), ahead=ahead)
    except Exception as error:  # noqa: BLE001  as DRF's view has it
        return _refuse(request, error, by)


def ask_view(request: DoorRequest) -> HttpResponseBase:
    """As DRF does, of a view that finds all it asks for in a plain head."""
    by: Principal | None = None
    route = request.call.route
    try:
        by = resolve_header_principal(request.headers.get("Authorization", ""), address=request.META["REMOTE_ADDR"])
        act_for(by.tenant_id)
        view: Any = route.view()
        asked = view.request = Request(request, parsers=view.get_parsers(), negotiator=view.get_content_negotiator())
        asked.user = by  # type: ignore[assignment]  # as above
        asked.accepted_renderer = JSONRenderer()
        view.kwargs, view.asked = route.said, {}
        found: HttpResponseBase = view.post(asked, **route.said)
        return found
    except Exception as error:  # noqa: BLE001  as DRF's view has it
        return _refuse(request, error, by)


def _refuse(request: DoorRequest, error: Exception, by: Principal | None) -> HttpResponse:
    problem = translate_exception(error, request)
    return answer_rejected(request, problem, by=None if isinstance(problem, Unauthenticated) else by)


def _read_call(request: DoorRequest) -> CallRequest:
    said = StrictJSONParser().parse(BytesIO(request.sent))
    return read_call_body(said, request.headers, request.call.route.said["tool_id"])


def _read_early(request: DoorRequest) -> CallRequest | None:
    """None where it cannot be read: that is said after who makes it is known, when it is read again."""
    try:
        return _read_call(request)
    except Exception:  # noqa: BLE001  raised then
        return None


class WrittenHeaders(NamedTuple):
    """What request middleware and view write into an answer that says nothing itself, in their order; and the address's route."""

    headers: tuple[tuple[str, str], ...]
    route: str

    @classmethod
    def record(cls, scope: Mapping[str, Any], view: type[CallView]) -> WrittenHeaders:
        """By asking them, with a plain head; the view itself, which answers anybody with nothing."""

        def post(*_: Any, **__: Any) -> HttpResponse:
            return HttpResponse()

        empty: Any = type("EmptyAnswer", (view,), {"authentication_classes": (), "post": post})
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        asked = ASGIRequest({**scope, "headers": headers}, BytesIO())
        match = asked.direct_match = resolve(asked.path_info)  # type: ignore[attr-defined]
        match.func = empty.as_view()
        answer = build_direct_chain()(asked)
        if answer.status_code != HTTPStatus.OK:
            raise RuntimeError(f"Request middleware answers a plain request by itself: {answer.status_code}.")
        own = {CONTENT_TYPE, HEADER_REQUEST_ID, *current_trace()}
        return cls(tuple((name, text) for name, text in answer.items() if name not in own), match.route)

    def write_into(self, response: HttpResponseBase, request: DoorRequest) -> None:
        for name, text in self.headers:
            if name == VARY:
                patch_vary_headers(response, (text,))
            elif name != CONTENT_LENGTH:
                response.headers.setdefault(name, text)
            elif isinstance(response, HttpResponse):
                response.headers.setdefault(name, str(len(response.content)))
        for name, text in ({HEADER_REQUEST_ID: request.request_id} | current_trace()).items():
            response.headers[name] = text
