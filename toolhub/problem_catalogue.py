"""Problem catalogue: the problems that callers can meet, as data and as pages, from the classes that are raised."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET

import llm.problems  # noqa: F401  its classes are in the catalogue before anything raises them
from kernel.http.console import public, render_page
from kernel.http.endpoints import refuse_query
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.exception_handlers import build_problem_response
from kernel.problems import NotFound, Problem, Retryable, collect_problem_classes

# Whether the same call can help: for people.
RETRIES = {
    Retryable.NO: gettext_noop("No. The same call would be refused again."),
    Retryable.YES: gettext_noop("Yes. The same call may succeed later."),
    Retryable.SAME_KEY: gettext_noop("Only with the same Idempotency-Key: the first call may have had its effect."),
    Retryable.AFTER_ACTION: gettext_noop("Once the remedy has been applied."),
}


def build_example(cls: type[Problem]) -> dict[str, Any]:
    """An answer that carries this problem."""
    return ResponseEnvelope(error=cls()).to_json(instance="/api/v1/tools/sample.tools.echo/invoke")


def build_catalogue_entry(cls: type[Problem]) -> dict[str, Any]:
    return {
        "reason": cls.reason,
        "code": str(cls.code),
        "status": cls.status,
        "retryable": str(cls.retryable),
        "retry_after_s": cls.retry_after_s,
        "error_type": cls.error_type() or None,
        "title": cls.title(),
        "cause": cls.cause,
        "cure": cls.cure,
        "page": reverse("problem", args=[cls.reason]),
    }


def get_known_class(reason: str) -> type[Problem]:
    found = next((cls for cls in collect_problem_classes() if cls.reason == reason), None)
    if found is None:
        raise NotFound("There is no problem with this reason.", remedy="See the list of all at /errors.")
    return found


@require_GET
@public
def problem_list(request: HttpRequest) -> HttpResponse:
    """The list of all. Context: problems (list of classes)."""
    return render_page(request, "errors/catalogue.html", {"section": "api", "problems": collect_problem_classes()})


@require_GET
@public
def problem_detail(request: HttpRequest, reason: str) -> HttpResponse:
    """What one problem means, for people. Context: problem (a class), retry (a sentence), example."""
    cls = get_known_class(reason)
    context = {"section": "api", "problem": cls, "retry": RETRIES[cls.retryable], "example": build_example(cls)}
    return render_page(request, "errors/entry.html", context)


@public
@refuse_query
def error_list(request: HttpRequest) -> JsonResponse:
    del request
    return JsonResponse(
        ResponseEnvelope(data={"errors": [build_catalogue_entry(cls) for cls in collect_problem_classes()]}).to_json()
    )


@public
@refuse_query
def error_detail(request: HttpRequest, reason: str) -> HttpResponse:
    """One problem; its address is the ``type`` of every answer that carries it. A browser is sent to the page."""
    try:
        cls = get_known_class(reason)
    except NotFound as missing:
        return build_problem_response(request, missing)
    response: HttpResponse
    if request.get_preferred_type(["application/json", "text/html"]) == "text/html":
        response = HttpResponseRedirect(reverse("problem", args=[cls.reason]))
    else:
        response = JsonResponse(
            ResponseEnvelope(data=build_catalogue_entry(cls) | {"example": build_example(cls)}).to_json()
        )
    patch_vary_headers(response, ["Accept"])
    return response
