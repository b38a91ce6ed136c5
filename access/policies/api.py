"""Policies over REST: read, checked, drafted and tried.

Publishing and rolling back are decisions of people; they are in the console only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema, extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.response import Response

from access.models import PolicyState, PolicyVersion
from access.policies import services
from access.policies.findings import is_sound
from access.policies.impact import previews
from access.policies.language import document_schema, validate_policy
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    IdField,
    PageSerializer,
    QuerySerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import decode
from kernel.problems import NotFound, SchemaInvalid

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

LAYERS = ("hub", "tenant")
READ = {"GET": "policies:read", "POST": "policies:draft"}


class PolicyFindingSerializer(serializers.Serializer[Any]):
    pointer = serializers.CharField(help_text="A JSON Pointer into the document.")
    rule = serializers.CharField(help_text="The check that found it.")
    message = serializers.CharField()
    fix = serializers.CharField()
    severity = serializers.ChoiceField(["error", "warning"])


class PolicySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    label = serializers.CharField(  # type: ignore[assignment]
        help_text="How verdicts and facts name it: hub@3, tenant@7."
    )
    layer = serializers.ChoiceField(LAYERS)
    number = serializers.IntegerField()
    state = serializers.ChoiceField(PolicyState.choices)
    digest = serializers.CharField()
    rules = serializers.IntegerField(help_text="How many rules it has.")
    note = serializers.CharField()
    drafted_by = serializers.CharField()
    drafted_at = serializers.DateTimeField()
    published_by = serializers.CharField(allow_null=True)
    published_at = serializers.DateTimeField(allow_null=True)


class WholePolicySerializer(PolicySerializer):
    document = serializers.JSONField(help_text="The rules; GET /api/v1/policies/schema says their form.")
    findings = PolicyFindingSerializer(many=True)
    preview = serializers.JSONField(allow_null=True, help_text="Of a draft: the last simulation with its analysis.")
    preview_stale = serializers.CharField(allow_null=True, help_text="Why the preview counts no more.")


class ShiftSerializer(serializers.Serializer[Any]):
    aspect = serializers.CharField(help_text="call, or the effect of the rules that add something.")
    direction = serializers.ChoiceField(["wider", "narrower", "different"])
    before = serializers.JSONField(allow_null=True, help_text="What held for the witness.")
    after = serializers.JSONField(allow_null=True, help_text="What would hold for it.")
    old_rules = serializers.ListField(child=serializers.CharField())
    new_rules = serializers.ListField(child=serializers.CharField())
    witness = serializers.JSONField(help_text="The attributes of a call that shows it.")


class DeadRuleSerializer(serializers.Serializer[Any]):
    rule = serializers.CharField()
    why = serializers.ChoiceField(["never_matches", "makes_no_difference"])


class AnalysisSerializer(serializers.Serializer[Any]):
    shifts = ShiftSerializer(many=True)
    dead = DeadRuleSerializer(many=True)
    classes = serializers.IntegerField(help_text="How many classes of calls were looked at.")
    complete = serializers.BooleanField()
    sliced = serializers.BooleanField(help_text="Each changed rule was looked at by itself.")
    unfinished = serializers.ListField(child=serializers.CharField())
    more = serializers.IntegerField(help_text="Shifts that are not listed.")


ONE, MANY = (
    build_envelope_serializer("PolicyEnvelope", WholePolicySerializer()),
    build_page_serializer("PolicyPage", "policies", PolicySerializer),
)
CHECKED = build_envelope_serializer(
    "PolicyCheckEnvelope",
    inline_serializer(
        "PolicyCheck", {"sound": serializers.BooleanField(), "findings": PolicyFindingSerializer(many=True)}
    ),
)
COMPARED = build_envelope_serializer("PolicyAnalysisEnvelope", AnalysisSerializer())


def policy_json(version: PolicyVersion) -> dict[str, Any]:
    return {
        "id": version.wire_id,
        "label": version.label,
        "layer": "hub" if version.tenant_id is None else "tenant",
        "number": version.number,
        "state": version.state,
        "digest": version.digest,
        "rules": len(version.document["rules"]),
        "note": version.note,
        "drafted_by": version.drafted_by,
        "drafted_at": version.drafted_at.isoformat(),
        "published_by": version.published_by or None,
        "published_at": version.published_at.isoformat() if version.published_at else None,
    }


def whole_policy_json(version: PolicyVersion, *, own: bool) -> dict[str, Any]:
    """``own``: whether the reader may see calls of everybody whom the policy binds."""
    draft = own and version.state == PolicyState.DRAFT
    return policy_json(version) | {
        "document": version.document,
        "findings": [finding.to_json() for finding in validate_policy(version.document)],
        "preview": version.simulation if own else None,
        "preview_stale": (previews.why_stale(version) or None) if draft else None,
    }


@extend_schema_field({"$ref": "#/components/schemas/PolicyDocument"})
class DocumentField(serializers.JSONField):
    """Rules; what is wrong with them is said by the service, each with its cure."""


class PolicyTextSerializer(StrictSerializer):
    document = DocumentField()


class CheckedTextSerializer(StrictSerializer):
    document = serializers.JSONField(allow_null=True, help_text="What is wrong with it is the answer.")


class NewDraftSerializer(PolicyTextSerializer):
    layer = serializers.ChoiceField(LAYERS, default="tenant")
    note = serializers.CharField(max_length=services.MAX_NOTE, required=False, default="", allow_blank=True)


class ChangedDraftSerializer(PolicyTextSerializer):
    note = serializers.CharField(max_length=services.MAX_NOTE, required=False, allow_blank=True)


class SimulationSerializer(StrictSerializer):
    calls = serializers.IntegerField(
        required=False, default=previews.DEFAULT_CALLS, min_value=1, max_value=previews.MAX_CALLS
    )


def _answer(version: PolicyVersion, request: Request, *, status: int = 200) -> Response:
    own = version.tenant_id == get_caller(request).tenant_id
    headers = {"Location": f"/api/v1/policies/{version.wire_id}"} if status == 201 else None
    data = whole_policy_json(version, own=own)
    return Response(ResponseEnvelope(data=data).to_json(), status=status, headers=headers)


class PolicyQuerySerializer(PageSerializer):
    state = serializers.ChoiceField(PolicyState.values, required=False)
    layer = serializers.ChoiceField(LAYERS, required=False)


class PolicyListView(Endpoint):
    """The versions of the tenant's policy and of the hub's, newest first; a new draft for the tenant."""

    required_scope = READ
    query = PolicyQuerySerializer
    cursor = "pol"

    @extend_schema(
        operation_id="list_policies",
        responses={200: MANY},
    )
    def get(self, request: Request) -> Response:
        rows = filter_policies(PolicyVersion.objects.visible_to(get_caller(request)), self.asked)
        page = self.page_of(rows)
        data = {"policies": [policy_json(version) for version in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="draft_policy", request=NewDraftSerializer, responses={201: ONE})
    def post(self, request: Request) -> Response:
        asked = read_body(request, NewDraftSerializer)
        version = services.draft_policy(
            document=asked["document"], note=asked["note"], hub=asked["layer"] == "hub", by=get_caller(request)
        )
        return _answer(version, request, status=201)


def filter_policies(rows: Any, asked: Any) -> Any:
    """By ``state`` and ``layer`` of a query; what is not one of them is refused."""
    state, layer = asked.get("state", ""), asked.get("layer", "")
    if state:
        if state not in PolicyState.values:
            raise SchemaInvalid(f"There is no state {state[:40]}. The states are {', '.join(PolicyState.values)}.")
        rows = rows.filter(state=state)
    if layer:
        if layer not in LAYERS:
            raise SchemaInvalid(f"There is no layer {layer[:40]}. The layers are {' and '.join(LAYERS)}.")
        rows = rows.filter(tenant__isnull=layer == "hub")
    return rows


class PolicyView(Endpoint):
    """One version with its rules; another text for a draft of one's own."""

    required_scope = {"GET": "policies:read", "PUT": "policies:draft"}
    conditional = True

    @extend_schema(operation_id="read_policy", responses={200: ONE})
    def get(self, request: Request, policy_id: UUID) -> Response:
        return _answer(PolicyVersion.objects.visible_to(get_caller(request)).get(pk=policy_id), request)

    @extend_schema(operation_id="change_policy_draft", request=ChangedDraftSerializer, responses={200: ONE})
    def put(self, request: Request, policy_id: UUID) -> Response:
        asked = read_body(request, ChangedDraftSerializer)
        version = services.change_draft(version_id=policy_id, by=get_caller(request), **asked)
        return _answer(version, request)


def show_draft(version: PolicyVersion) -> dict[str, Any]:
    """Who may touch a draft sees the hub's, or one of their own tenant."""
    return whole_policy_json(version, own=version.tenant_id is not None)


DRAFT_ACTIONS = ActionTable(__name__, "policies:draft", ONE, show_draft, renamed={"policy_id": "version_id"})
PolicySimulateView = DRAFT_ACTIONS.build_view(
    "simulate_policy",
    services.simulate_policy,
    "Try a draft on the last calls, and compare it with what is in force.",
    body=SimulationSerializer,
)
PolicyDiscardView = DRAFT_ACTIONS.build_view("discard_policy_draft", services.discard_draft, "Give a draft up.")


class AnalysisQuerySerializer(QuerySerializer):
    against = IdField("pol", required=False, help_text="What is in force, when it is left out.")


class PolicyAnalysisView(Endpoint):
    """What this version allows that another does not, and the other way round, with a call that shows each."""

    required_scope = "policies:read"
    query = AnalysisQuerySerializer

    @extend_schema(
        operation_id="analyse_policy",
        responses={200: COMPARED},
    )
    def get(self, request: Request, policy_id: UUID) -> Response:
        seen = PolicyVersion.objects.visible_to(get_caller(request))
        version = seen.get(pk=policy_id)
        before = previews.document_before(version)
        if against := self.asked.get("against", ""):
            try:
                before = seen.get(pk=decode("pol", against)).document
            except ValueError as error:
                raise NotFound("There is no policy with this id.") from error
        return Response(ResponseEnvelope(data=previews.compare_documents(before, version.document).to_json()).to_json())


class PolicyCheckView(Endpoint):
    """What is wrong with a document, without keeping it."""

    required_scope = "policies:draft"

    @extend_schema(operation_id="check_policy", request=CheckedTextSerializer, responses={200: CHECKED})
    def post(self, request: Request) -> Response:
        findings = validate_policy(read_body(request, CheckedTextSerializer)["document"])
        data = {"sound": is_sound(findings), "findings": [finding.to_json() for finding in findings]}
        return Response(ResponseEnvelope(data=data).to_json())


class PolicySchemaView(Endpoint):
    """The JSON Schema of a policy document."""

    required_scope = "policies:read"

    @extend_schema(
        operation_id="read_policy_schema",
        responses={200: build_envelope_serializer("PolicySchemaEnvelope", serializers.JSONField())},
    )
    def get(self, request: Request) -> Response:
        return Response(ResponseEnvelope(data=document_schema()).to_json())
