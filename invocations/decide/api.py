"""Decisions over REST: how an agent asks whether it may make a call, or all of a plan, without making any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers

from invocations.accept.api import AskingView
from invocations.decide.preflight_requests import check_combined_budgets, request_preflight, request_preflights
from invocations.explanations.api import DecisionStepSerializer
from invocations.serializers import EXAMPLE, CandidatesSerializer, InvokeSerializer, read_call, read_candidates
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import build_envelope_serializer
from kernel.http.envelopes import ResponseEnvelope
from registry.tools.deprecation import deprecation_headers, deprecation_warnings

if TYPE_CHECKING:
    from rest_framework.request import Request

PLAN = OpenApiExample(
    "Two calls of a plan",
    value={
        "request_id": "2f6f1c9e-plan-1",
        "actor": {"type": "agent", "id": "shopping-assistant"},
        "calls": [
            {"tool": "commerce.pricing.get_realtime_quote", "arguments": {"sku": "LAPTOP-14", "quantity": 2}},
            {"tool": "commerce.tax.estimate_duties_and_taxes", "arguments": {}},
        ],
    },
    request_only=True,
)


class PreflightSerializer(serializers.Serializer[Any]):
    allow = serializers.BooleanField()
    problem = serializers.JSONField(allow_null=True, help_text="What is in the way; of several the first.")
    tool = serializers.CharField()
    version = serializers.CharField(allow_null=True)
    refused_at = serializers.CharField(allow_null=True)
    steps = DecisionStepSerializer(many=True)
    profile = serializers.JSONField(allow_null=True)
    profile_hash = serializers.CharField(allow_null=True)
    profile_explanation = serializers.ListField(child=serializers.JSONField())
    policy = serializers.JSONField(allow_null=True)
    budget_snapshot = serializers.JSONField(allow_null=True)
    consent = serializers.CharField(allow_null=True)
    obligations = serializers.JSONField(allow_null=True)
    model = serializers.JSONField(
        required=False, help_text="Of a model: the tokens and the money that the call may take."
    )


PREFLIGHT_ENVELOPE = build_envelope_serializer("PreflightEnvelope", PreflightSerializer())


class TogetherSerializer(serializers.Serializer[Any]):
    fits = serializers.BooleanField(help_text="Whether the budgets have room for all of the calls.")
    budgets = serializers.ListField(child=serializers.JSONField(), help_text="`takes` is the sum of all calls.")
    short = serializers.ListField(child=serializers.CharField(), help_text="The budgets that have no room for the sum.")


class PreflightsSerializer(serializers.Serializer[Any]):
    calls = PreflightSerializer(many=True)
    together = TogetherSerializer()


class ToolPreflightView(AskingView):
    """Would this call be allowed, and within what? Every step that can be known; nothing runs and nothing is taken."""

    @extend_schema(
        request=InvokeSerializer,
        responses={200: PREFLIGHT_ENVELOPE},
        examples=[EXAMPLE],
        operation_id="preflight",
    )
    def post(self, request: Request, tool_id: str) -> HttpResponse:
        asked = request_preflight(read_call(request, tool_id), by=get_caller(request))
        assert asked.preflight is not None
        manifest = asked.preflight.version.manifest if asked.preflight.version else None
        warnings = tuple(deprecation_warnings(asked.retirement, manifest))
        envelope = ResponseEnvelope(data=asked.to_json(), warnings=warnings)
        return JsonResponse(envelope.to_json(), headers=deprecation_headers(asked.retirement))


class PreflightsView(AskingView):
    """The same for up to 100 calls of a plan, each judged alone, and all together against the budgets."""

    @extend_schema(
        request=CandidatesSerializer,
        responses={200: build_envelope_serializer("PreflightsEnvelope", PreflightsSerializer())},
        examples=[PLAN],
        operation_id="preflights",
    )
    def post(self, request: Request) -> HttpResponse:
        asked = request_preflights(read_candidates(request), by=get_caller(request))
        data = {"calls": [each.to_json() for each in asked], "together": check_combined_budgets(asked)}
        return JsonResponse(ResponseEnvelope(data=data).to_json())
