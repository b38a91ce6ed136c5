"""How does an agent ask whether it may make a call, without making it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import extend_schema
from rest_framework.views import APIView

from invocations import services
from invocations.serializers import EXAMPLE, EnvelopeSerializer, InvokeSerializer, read_call
from registry.deprecation import deprecation_headers, deprecation_warnings, retirement_in
from toolhub.kernel.api import caller
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.ids import encode

if TYPE_CHECKING:
    from rest_framework.request import Request


class ToolPreflightView(APIView):
    """Would this call be allowed, and within what? Nothing runs and nothing is counted."""

    required_scope = "invocations:create"

    @extend_schema(
        request=InvokeSerializer, responses={200: EnvelopeSerializer}, examples=[EXAMPLE], operation_id="preflight"
    )
    def post(self, request: Request, tool_id: str) -> HttpResponse:
        call = read_call(request, tool_id)
        preflight, log = services.preflight_call(call, by=caller(request))
        problem = preflight.problem
        data: dict[str, Any] = {
            "allow": problem is None,
            "refused_at": preflight.refused_at or None,
            "problem": problem.to_error() if problem else None,
            "steps": [
                {
                    "name": step["name"].removeprefix("preflight."),
                    "status": step["status"],
                    "ms": round(step["end_ms"] - step["begin_ms"], 3),
                }
                for step in log.steps
            ],
            "tool": call.tool,
            "version": preflight.standing.installed.version or None if preflight.standing.installed else None,
            "profile": preflight.profile.to_json() if preflight.profile else None,
            "profile_hash": preflight.profile_hash or None,
            "profile_explanation": preflight.explanation,
            "policy": {"version": preflight.policy_label, "hash": preflight.policy_hash},
            "budget_snapshot": preflight.budget or None,
            "consent": encode("cns", preflight.consent.id) if preflight.consent else None,
            "obligations": preflight.obligations,
        }
        retirement = retirement_in(preflight.standing)
        manifest = preflight.version.manifest if preflight.version else None
        envelope = ResponseEnvelope(data=data, warnings=tuple(deprecation_warnings(retirement, manifest)))
        return JsonResponse(envelope.to_json(), headers=deprecation_headers(retirement))
