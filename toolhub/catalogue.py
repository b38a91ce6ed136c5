"""Which problems can callers meet? The catalogue as data and as pages, from the same classes that are raised."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_GET

from toolhub.kernel.console import public, render_page
from toolhub.kernel.endpoints import without_query
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.handlers import respond
from toolhub.kernel.problems import NotFound, Problem, Retryable, catalogue

# Whether the same call can help: for people.
RETRIES = {
    Retryable.NO: gettext_noop("No. The same call would be refused again."),
    Retryable.YES: gettext_noop("Yes. The same call may succeed later."),
    Retryable.SAME_KEY: gettext_noop("Only with the same Idempotency-Key: the first call may have had its effect."),
    Retryable.AFTER_ACTION: gettext_noop("Once somebody has done what the remedy says."),
}


def example(cls: type[Problem]) -> dict[str, Any]:
    """An answer that carries this problem."""
    return ResponseEnvelope(error=cls()).to_json(instance="/api/v1/tools/sample.tools.echo/invoke")


def entry(cls: type[Problem]) -> dict[str, Any]:
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


def known(reason: str) -> type[Problem]:
    found = next((cls for cls in catalogue() if cls.reason == reason), None)
    if found is None:
        raise NotFound("There is no problem with this reason.", remedy="See the list of all at /errors.")
    return found


@require_GET
@public
def problems(request: HttpRequest) -> HttpResponse:
    """The list of all. Context: problems (list of classes)."""
    return render_page(request, "errors/catalogue.html", {"section": "api", "problems": catalogue()})


@require_GET
@public
def problem(request: HttpRequest, reason: str) -> HttpResponse:
    """What one problem means, for people. Context: problem (a class), retry (a sentence), example."""
    cls = known(reason)
    context = {"section": "api", "problem": cls, "retry": RETRIES[cls.retryable], "example": example(cls)}
    return render_page(request, "errors/entry.html", context)


@public
@without_query
def errors(request: HttpRequest) -> JsonResponse:
    del request
    return JsonResponse(ResponseEnvelope(data={"errors": [entry(cls) for cls in catalogue()]}).to_json())


@public
@without_query
def error(request: HttpRequest, reason: str) -> HttpResponse:
    """One problem; its address is the ``type`` of every answer that carries it. A browser is sent to the page."""
    try:
        cls = known(reason)
    except NotFound as missing:
        return respond(request, missing)
    response: HttpResponse
    if request.get_preferred_type(["application/json", "text/html"]) == "text/html":
        response = HttpResponseRedirect(reverse("problem", args=[cls.reason]))
    else:
        response = JsonResponse(ResponseEnvelope(data=entry(cls) | {"example": example(cls)}).to_json())
    patch_vary_headers(response, ["Accept"])
    return response
