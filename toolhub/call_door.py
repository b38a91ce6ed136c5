"""Call door: how most calls over REST come in, past Django's handler and DRF's view.

It takes ``POST …/invoke`` with a plain head (:mod:`kernel.http.plain_heads`), and hands everything else on. What it takes it puts to
the functions that the view of that address uses: key, body, call, answer, refusal and its count. What stands around a view is asked
once, for such a request, and what that wrote into its answer stands in each. So the door decides nothing of its own, and both answer
alike, byte for byte (tests/integration/api/test_direct_routes.py).
"""

from __future__ import annotations

import re
from datetime import UTC
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import resolve
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.log import log_response
from rest_framework.request import Request

from access.authentication.bearer import remembers_key, resolve_header_principal
from invocations.accept.call_basis import BasisAhead
from invocations.api import ToolInvokeView, make_call
from invocations.request_tallies import answer_rejected
from invocations.serializers import read_call_body
from kernel.database.connections import release_connection
from kernel.database.tenancy import act_for, acting_for_nobody
from kernel.http.deferred_responses import WaitingResponse
from kernel.http.direct_routes import METHOD, build_direct_chain
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

    from invocations.calls import CallRequest
    from kernel.http.body_limits import Receive, Send
    from kernel.http.deferred_responses import Handler
    from kernel.principal import Principal

ADDRESS = re.compile(rf"{API_PREFIX}v1/tools/([A-Za-z0-9._-]{{1,300}})/invoke")
DISCONNECT = "http.disconnect"
CONTENT_LENGTH, CONTENT_TYPE, VARY = "Content-Length", "Content-Type", "Vary"
_UNPREFIXED = {"content-type": "CONTENT_TYPE", "content-length": "CONTENT_LENGTH"}


class DoorRequest(HttpRequest):
    """As much of a request as anything asks of one with a plain head."""

    def __init__(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        # Without Django's own, which makes what nobody on this way asks for.
        self.scope = scope
        self.method, self.path, self.path_info = METHOD, scope["path"], scope["path"]
        self.META = {
            _UNPREFIXED.get(name) or f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()
        }
        self.META["REMOTE_ADDR"] = (scope.get("client") or ("",))[0]
        self.request_id = read_log_field("request_id") or choose_request_id(headers.get(HEADER_REQUEST_ID.lower(), ""))


class CallDoor:
    """An ASGI application before ``handler``, whose threads it shares. With traces that go somewhere it takes nothing: telemetry's own
    middleware stands in Django's chain.
    """

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._is_open = not any(name.startswith("opentelemetry.") for name in settings.MIDDLEWARE)
        self._written: dict[str, WrittenHeaders] = {}  # by the scheme of the request

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        found = self.find_call(scope) if scope["type"] == "http" else None
        if found is None:
            await self._handler(scope, receive, send)
        elif (body := await read_body(receive)) is not None:
            await self._handler.serve(scope, receive, send, partial(self.answer, scope, *found, body))

    def find_call(self, scope: Mapping[str, Any]) -> tuple[str, dict[str, str]] | None:
        """The tool that is to be called and the headers; None for what takes the other way."""
        if not self._is_open or scope["method"] != METHOD or (address := ADDRESS.fullmatch(scope["path"])) is None:
            return None
        headers = read_plain_headers(scope)
        return None if headers is None else (address[1], headers)

    def answer(self, scope: dict[str, Any], tool: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """In a thread, whose connection is given back at the end."""
        request, written = DoorRequest(scope, headers), self._find_written(scope)
        try:
            with acting_for_nobody(), timezone.override(UTC):
                response = _answer(request, tool, body)
        except Exception as error:  # noqa: BLE001  mapped and logged like what a view raises
            response = build_problem_response(request, translate_exception(error, request))
        finally:
            release_connection()
        if isinstance(response, WaitingResponse):
            response.request = request
        if response.status_code >= 400:
            log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)
        scope[ROUTE] = written.route
        written.write_into(response, request)
        return response

    def _find_written(self, scope: Mapping[str, Any]) -> WrittenHeaders:
        scheme = scope.get("scheme", "http")
        if (found := self._written.get(scheme)) is None:
            found = self._written[scheme] = WrittenHeaders.record(scope)
        return found


async def read_body(receive: Receive) -> bytes | None:
    """None: the caller has gone."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == DISCONNECT:
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _answer(request: DoorRequest, tool: str, body: bytes) -> HttpResponse:
    """As ``ToolInvokeView``: who calls, what is called, what becomes of it."""
    by: Principal | None = None
    header = request.headers.get("Authorization", "")
    try:
        # What decides about the call of a known caller is asked with the key.
        early = (
            _read_early(request, tool, body) if connection.vendor == "postgresql" and remembers_key(header) else None
        )
        ahead = BasisAhead(early) if early is not None else None
        by = resolve_header_principal(header, address=request.META["REMOTE_ADDR"], ahead=ahead)
        act_for(by.tenant_id)
        asked = Request(request)
        asked.user = by  # type: ignore[assignment]  # as authentication has it: here nobody but people are users
        return make_call(asked, early or _read_call(request, tool, body), ahead=ahead)
    except Exception as error:  # noqa: BLE001  as DRF's view has it
        problem = translate_exception(error, request)
        return answer_rejected(request, problem, by=None if isinstance(problem, Unauthenticated) else by)


def _read_call(request: DoorRequest, tool: str, body: bytes) -> CallRequest:
    return read_call_body(StrictJSONParser().parse(BytesIO(body)), request.headers, tool)


def _read_early(request: DoorRequest, tool: str, body: bytes) -> CallRequest | None:
    """None where it cannot be read: that is said after who makes it is known, when it is read again."""
    try:
        return _read_call(request, tool, body)
    except Exception:  # noqa: BLE001  raised then
        return None


class _EmptyAnswer(ToolInvokeView):
    """The view itself, which answers anybody with nothing."""

    authentication_classes = ()

    def post(self, request: Request, tool_id: str) -> HttpResponse:
        del request, tool_id
        return HttpResponse()


class WrittenHeaders(NamedTuple):
    """What request middleware and view write into an answer that says nothing itself, in their order; and the address's route."""

    headers: tuple[tuple[str, str], ...]
    route: str

    @classmethod
    def record(cls, scope: Mapping[str, Any]) -> WrittenHeaders:
        """By asking them, with a plain head."""
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        asked = ASGIRequest({**scope, "headers": headers}, BytesIO())
        match = asked.direct_match = resolve(asked.path_info)  # type: ignore[attr-defined]
        match.func = _EmptyAnswer.as_view()
        answer = build_direct_chain()(asked)
        if answer.status_code != HTTPStatus.OK:
            raise RuntimeError(f"Request middleware answers a plain request by itself: {answer.status_code}.")
        own = {CONTENT_TYPE, HEADER_REQUEST_ID, *current_trace()}
        return cls(tuple((name, text) for name, text in answer.items() if name not in own), match.route)

    def write_into(self, response: HttpResponse, request: DoorRequest) -> None:
        for name, text in self.headers:
            if name == VARY:
                patch_vary_headers(response, (text,))
            else:
                response.headers.setdefault(name, str(len(response.content)) if name == CONTENT_LENGTH else text)
        for name, text in ({HEADER_REQUEST_ID: request.request_id} | current_trace()).items():
            response.headers[name] = text
