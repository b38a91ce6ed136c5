"""Which problems can callers meet? The catalogue as data, from the same classes that are raised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, JsonResponse

from toolhub.kernel.console import public
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.handlers import respond
from toolhub.kernel.problems import NotFound, catalogue

if TYPE_CHECKING:
    from django.http import HttpResponse

    from toolhub.kernel.problems import Problem


def entry(cls: type[Problem]) -> dict[str, Any]:
    return {
        "reason": cls.reason,
        "code": str(cls.code),
        "status": cls.status,
        "retryable": str(cls.retryable),
        "error_type": cls.error_type() or None,
        "title": cls.title(),
    }


@public
def errors(request: HttpRequest) -> JsonResponse:
    del request
    return JsonResponse(ResponseEnvelope(data={"errors": [entry(cls) for cls in catalogue()]}).to_json())


@public
def error(request: HttpRequest, reason: str) -> HttpResponse:
    """One problem; its address is the ``type`` of every answer that carries it."""
    found = next((cls for cls in catalogue() if cls.reason == reason), None)
    if found is None:
        return respond(request, NotFound("There is no problem with this reason."))
    return JsonResponse(ResponseEnvelope(data=entry(found)).to_json())
