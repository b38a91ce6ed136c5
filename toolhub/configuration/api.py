"""Configuration over REST: how programs plan, apply and export that of a tenant.

With the scope configuration:apply and, for each section in which something would change, the scope that changes it one by one.
People, and who they are, are not for programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.response import Response

from kernel.canonical import compute_digest
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import StrictSerializer, build_envelope_serializer
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from toolhub.configuration import services
from toolhub.configuration.document import ConfigurationDocument, load_document_schema, read_document
from toolhub.configuration.file_format import MAX_BYTES, read_text
from toolhub.configuration.plan import Action, ConfigurationPlan
from toolhub.configuration.services import MAX_REASON

if TYPE_CHECKING:
    from rest_framework.request import Request

SCOPE = "configuration:apply"
NO_PEOPLE = "The section members is left out: only people say who belongs to a tenant."


class FileSerializer(StrictSerializer):
    document = serializers.DictField(
        required=False, help_text="The file as a value. GET /api/v1/configuration/schema says its form."
    )
    text = serializers.CharField(
        required=False, trim_whitespace=False, max_length=MAX_BYTES, help_text="The file as text, YAML or JSON."
    )
    prune = serializers.BooleanField(
        required=False, default=False, help_text="End what the file leaves out, in each of its sections."
    )

    never = (
        {"required": ["document", "text"]},
        {"not": {"anyOf": [{"required": ["document"]}, {"required": ["text"]}]}},
    )

    def validate(self, attrs: Any) -> Any:
        if ("document" in attrs) == ("text" in attrs):
            raise serializers.ValidationError({"document": ["Send the file as document or as text; one of the two."]})
        return attrs

    def file(self) -> ConfigurationDocument:
        given = self.validated_data
        value = read_text(given["text"]) if "text" in given else given["document"]
        return read_document(value, prune_all=given["prune"])


class ApplySerializer(FileSerializer):
    digest = serializers.CharField(max_length=80, help_text="Of the plan that was looked at.")
    reason = serializers.CharField(max_length=MAX_REASON, required=False, default="", allow_blank=True)


class ChangeSerializer(serializers.Serializer[Any]):
    section = serializers.CharField()
    key = serializers.CharField(help_text="What people call it.")
    action = serializers.ChoiceField([str(action) for action in Action])
    pointer = serializers.CharField(help_text="Where the file says so.")
    before = serializers.JSONField(allow_null=True, help_text="The fields that differ, as they are.")
    after = serializers.JSONField(allow_null=True, help_text="The fields that differ, as they would be.")
    sentence = serializers.CharField()


_FIELDS: dict[str, Any] = {
    "digest": serializers.CharField(help_text="Send it with the file to apply exactly this."),
    "empty": serializers.BooleanField(help_text="Nothing would change."),
    "counts": serializers.DictField(child=serializers.IntegerField()),
    "changes": ChangeSerializer(many=True),
}
PLANNED = build_envelope_serializer("ConfigurationPlanEnvelope", inline_serializer("ConfigurationPlan", _FIELDS))
APPLIED = build_envelope_serializer(
    "ConfigurationAppliedEnvelope",
    inline_serializer(
        "ConfigurationApplied",
        _FIELDS
        | {
            "signing_secrets": serializers.DictField(
                child=serializers.CharField(),
                help_text="Of new webhooks, by their address. Shown this once.",
            )
        },
    ),
)
EXPORTED = build_envelope_serializer(
    "ConfigurationEnvelope",
    inline_serializer(
        "Configuration",
        {"document": serializers.JSONField(help_text="The file."), "digest": serializers.CharField()},
    ),
)


def plan_json(plan: ConfigurationPlan) -> dict[str, Any]:
    return {
        "digest": plan.digest,
        "empty": plan.is_empty,
        "counts": plan.counts,
        "changes": [change.to_json() for change in plan.changes],
    }


class ConfigurationPlanView(Endpoint):
    """What applying a file would change, one by one. Nothing is changed; what would be refused is refused now."""

    required_scope = SCOPE

    @extend_schema(operation_id="plan_configuration", request=FileSerializer, responses={200: PLANNED})
    def post(self, request: Request) -> Response:
        payload = FileSerializer(data=request.data)
        payload.is_valid(raise_exception=True)
        plan = services.plan_configuration(payload.file(), by=get_caller(request))
        return Response(ResponseEnvelope(data=plan_json(plan), warnings=tuple(plan.warnings)).to_json())


class ConfigurationApplyView(Endpoint):
    """Carry out a plan that was looked at: all of it or nothing."""

    required_scope = SCOPE

    @extend_schema(operation_id="apply_configuration", request=ApplySerializer, responses={200: APPLIED})
    def post(self, request: Request) -> Response:
        payload = ApplySerializer(data=request.data)
        payload.is_valid(raise_exception=True)
        given, by = payload.validated_data, get_caller(request)
        done = services.apply_configuration(
            document=payload.file(), plan_digest=given["digest"], reason=given["reason"], by=by
        )
        data = plan_json(done.plan) | {"signing_secrets": done.shown_once}
        warnings = (*done.plan.warnings, *services.list_applied_warnings(done, by=by))
        return Response(ResponseEnvelope(data=data, warnings=warnings).to_json())


class ConfigurationExportView(Endpoint):
    """The tenant's configuration as a file that, applied again, changes nothing."""

    required_scope = SCOPE

    @extend_schema(operation_id="export_configuration", responses={200: EXPORTED})
    def get(self, request: Request) -> Response:
        by = get_caller(request)
        document = services.export_configuration(by=by)
        warnings = () if services.sees_people(by) else (NO_PEOPLE,)
        data = {"document": document, "digest": compute_digest(document)}
        return Response(ResponseEnvelope(data=data, warnings=warnings).to_json())


class ConfigurationSchemaView(Endpoint):
    """The JSON Schema of a configuration file."""

    required_scope = SCOPE

    @extend_schema(
        operation_id="read_configuration_schema",
        responses={200: build_envelope_serializer("ConfigurationSchemaEnvelope", serializers.JSONField())},
    )
    def get(self, request: Request) -> Response:
        return Response(ResponseEnvelope(data=load_document_schema()).to_json())
