"""Exception handlers: how a problem becomes an answer, everywhere in the same way.

``translate_exception`` maps any exception to a :class:`Problem`; ``build_problem_response`` writes it as what the caller can
read: a page for a
browser, a fragment for HTMX, an envelope (RFC 9457 compatible) for the API.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import (
    BadRequest,
    ObjectDoesNotExist,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
)
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from rest_framework import exceptions as drf

from kernel.http.envelopes import ResponseEnvelope
from kernel.http.problem_shapes import find_problem_shape
from kernel.http.rate_limit_fields import write_rate_limit_fields
from kernel.problems import (
    DatabaseUnavailable,
    Forbidden,
    Internal,
    Malformed,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    Problem,
    SchemaInvalid,
    TooLarge,
    TooManyRequests,
    Unauthenticated,
    UnsupportedMediaType,
)

if TYPE_CHECKING:
    from django.http import HttpRequest

log = logging.getLogger("toolhub.problems")
API_PREFIX = "/api/"
SERVED_PREFIXES = ("/v1/", "/v1beta/")  # formats of others (invocations/model_calls/served)
PROBLEM_JSON = "application/problem+json"


def _findings(detail: Any, pointer: str = "") -> list[dict[str, str]]:
    """DRF's nested validation errors as a flat list of JSON pointer and sentence."""
    if isinstance(detail, dict):
        return [
            finding
            for key, value in detail.items()
            for finding in _findings(value, pointer if key == "non_field_errors" else f"{pointer}/{key}")
        ]
    if isinstance(detail, list):
        found: list[dict[str, str]] = []
        for index, value in enumerate(detail):
            found += _findings(value, f"{pointer}/{index}" if isinstance(value, (dict, list)) else pointer)
        return found
    return [{"pointer": pointer, "message": str(detail)}]


def _of_drf(exception: drf.APIException, request: HttpRequest | None) -> Problem:
    match exception:
        case drf.ValidationError():
            return SchemaInvalid(
                "The request does not have the expected shape.", details={"findings": _findings(exception.detail)}
            )
        case drf.NotAuthenticated() | drf.AuthenticationFailed():
            return Unauthenticated(str(exception.detail))
        case drf.PermissionDenied():
            return Forbidden(str(exception.detail))
        case drf.MethodNotAllowed():
            return MethodNotAllowed(str(exception.detail))
        case drf.NotAcceptable():
            return NotAcceptable(str(exception.detail))
        case drf.UnsupportedMediaType():
            return UnsupportedMediaType(str(exception.detail), remedy="Send application/json.")
        case drf.ParseError():
            return Malformed(str(exception.detail))
        case drf.NotFound():
            return NotFound(str(exception.detail))
        case _:
            return _unmapped(exception, request)


def _unmapped(exception: BaseException, request: HttpRequest | None) -> Internal:
    """What is logged with its stack is counted: invocations/service_levels/unmapped_errors.py."""
    log.error("Unmapped exception in request %s", getattr(request, "request_id", ""), exc_info=exception)
    return Internal("Something went wrong on our side. Quote the request id when you report it.")


def translate_exception(exception: BaseException, request: HttpRequest | None = None) -> Problem:
    """The catalogued problem for any exception. What is not known here is logged whole and answered as Internal."""
    match exception:
        case Problem():
            return exception
        case drf.APIException():
            return _of_drf(exception, request)
        case Http404() | ObjectDoesNotExist():
            return NotFound()
        case PermissionDenied():
            return Forbidden()
        case RequestDataTooBig():
            return TooLarge()
        case BadRequest() | SuspiciousOperation():
            return Malformed()
        case OperationalError() | InterfaceError():
            log.error("The database did not answer: %s", exception)
            return DatabaseUnavailable()
        case _:
            return _unmapped(exception, request)


def wants_envelope(request: HttpRequest) -> bool:
    return request.path.startswith(API_PREFIX) or request.path in ("/healthz", "/readyz")


def build_problem_response(
    request: HttpRequest, problem: Problem, *, envelope: ResponseEnvelope | None = None
) -> HttpResponse:
    """The answer for ``problem``. The status is the problem's, also on a page."""
    response: HttpResponse
    if shape := find_problem_shape(request.path, request.headers):
        status, said, headers = shape(problem)
        response = JsonResponse(said, status=status, headers=headers | {"Cache-Control": "no-store"})
    elif wants_envelope(request):
        body = (envelope or ResponseEnvelope(error=problem)).to_json(instance=request.path)
        response = JsonResponse(body, status=problem.status, content_type=PROBLEM_JSON)
    else:
        htmx = getattr(request, "htmx", None)
        template = "errors/problem.html#problem-panel" if htmx else "errors/problem.html"
        context = {"problem": problem, "request_id": getattr(request, "request_id", "")}
        response = HttpResponse(render_to_string(template, context, request), status=problem.status)
        response.headers["Vary"] = "HX-Request"
        response.headers["Cache-Control"] = "no-store"
    if problem.retry_after is not None:
        response.headers["Retry-After"] = str(problem.retry_after)
    if problem.limit is not None:
        for name, value in write_rate_limit_fields([problem.limit]).items():
            response.headers[name] = value
    if problem.status == 401:
        response.headers["WWW-Authenticate"] = build_challenge(bool(request.headers.get("Authorization")))
    return response


def build_challenge(tried: bool, *, error: str = "invalid_token", path: str = "", scope: str = "") -> str:
    """The ``WWW-Authenticate`` header (RFC 6750, RFC 9728): what was wrong with the credential that was ``tried``, where the
    metadata of the resource at ``path`` is, and which scopes help.
    """
    said = ['Bearer realm="toolhub"', f'error="{error}"' if tried else "", f'scope="{scope}"' if scope else ""]
    metadata = f"{settings.TOOLHUB_PUBLIC_URL}/.well-known/oauth-protected-resource{path}"
    return ", ".join(each for each in (*said, f'resource_metadata="{metadata}"') if each)


# The root URL configuration names these for what never reaches a view.
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    del exception
    return build_problem_response(request, NotFound("There is no page or endpoint at this address."))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return build_problem_response(request, translate_exception(exception, request))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return build_problem_response(request, translate_exception(exception, request))


def too_many(request: HttpRequest) -> HttpResponse:
    return build_problem_response(
        request, TooManyRequests("There were too many attempts. Wait a minute, then try again.")
    )


def server_error(request: HttpRequest) -> HttpResponse:
    return build_problem_response(request, translate_exception(sys.exc_info()[1] or RuntimeError("unknown"), request))


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    log.info("CSRF check failed: %s", reason)
    return build_problem_response(
        request,
        Forbidden(
            "This form was not sent from a page of this hub, or the page was too old. Nothing was changed.",
            remedy="Reload the page and try again.",
        ),
    )
