"""Explanations over REST: how an agent asks why it may, or may not, call a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpResponse, JsonResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers

from invocations.explanations.services import build_available_spec, explain_call, explanation_json
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import StrictSerializer, build_envelope_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from rest_framework.request import Request


class ExplainRequestSerializer(StrictSerializer):
    arguments = serializers.DictField(required=False, help_text="Without them, what depends on them is left open.")


class DecisionStepSerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    status = serializers.ChoiceField(["ok", "failed", "skipped"])
    ms = serializers.FloatField()
    note = serializers.CharField(allow_blank=True)
    problem = serializers.JSONField(allow_null=True)


class SmallestChangeSerializer(serializers.Serializer[Any]):
    step = serializers.CharField()
    kind = serializers.CharField(help_text="What would have to change: grant, policy, consent, installation or a step.")
    remedy = serializers.CharField()
    change = serializers.JSONField(allow_null=True, help_text="The smallest change that lets the call through.")
    ask = serializers.JSONField(allow_null=True, help_text="The request with which the agent can ask for it.")


class ExplanationSerializer(serializers.Serializer[Any]):
    agent = serializers.CharField()
    tool = serializers.CharField()
    allow = serializers.BooleanField()
    refused_at = serializers.CharField(allow_null=True)
    steps = DecisionStepSerializer(many=True)
    because = serializers.ListField(child=serializers.CharField())
    rules = serializers.ListField(child=serializers.CharField())
    conditions = serializers.ListField(child=serializers.JSONField())
    dropped = serializers.ListField(child=serializers.JSONField())
    changes = SmallestChangeSerializer(many=True)


class AvailableSerializer(serializers.Serializer[Any]):
    """The fields that are always there; those of the tool and the installation come with them."""

    id = serializers.CharField()
    urn = serializers.CharField()
    agent = serializers.CharField()
    allow = serializers.BooleanField()
    refused_at = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_null=True)
    policy = serializers.JSONField()
    grant = serializers.CharField(allow_null=True)
    conditions = serializers.ListField(child=serializers.JSONField())
    consent = serializers.JSONField()
    capabilities = serializers.JSONField(allow_null=True)
    profile_hash = serializers.CharField(allow_null=True)
    budgets = serializers.ListField(child=serializers.JSONField())
    price_micros = serializers.IntegerField(allow_null=True)
    obligations = serializers.ListField(child=serializers.JSONField())
    etag = serializers.CharField()


class ToolExplainView(Endpoint):
    """Every step of the decision, and the smallest changes that would let the call through. Nothing runs or is counted."""

    required_scope = "invocations:create"

    @extend_schema(
        operation_id="explain",
        request=ExplainRequestSerializer,
        responses={200: build_envelope_serializer("ExplanationEnvelope", ExplanationSerializer())},
    )
    def post(self, request: Request, tool_id: str) -> HttpResponse:
        arguments = read_body(request, ExplainRequestSerializer).get("arguments")
        preflight, log = explain_call(tool=tool_id, arguments=arguments, by=get_caller(request))
        return JsonResponse(ResponseEnvelope(data=explanation_json(preflight, log)).to_json())


class ToolAvailableView(Endpoint):
    """The tool as this agent may use it now: manifest, installation, policy, budgets and grant in one view."""

    required_scope = "tools:read"

    @extend_schema(
        operation_id="read_available_tool",
        responses={200: build_envelope_serializer("AvailableEnvelope", AvailableSerializer())},
    )
    def get(self, request: Request, tool_id: str) -> HttpResponse:
        preflight, _ = explain_call(tool=tool_id, by=get_caller(request))
        spec = build_available_spec(preflight)
        return JsonResponse(ResponseEnvelope(data=spec).to_json(), headers={"ETag": f'"{spec["etag"]}"'})
