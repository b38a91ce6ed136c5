"""Tools over REST: how agents find tools, and how authors register them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    PolymorphicProxySerializer,
    extend_schema,
    inline_serializer,
)
from rest_framework import serializers
from rest_framework.response import Response

from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import build_envelope_serializer
from kernel.http.console import public
from kernel.http.endpoints import Endpoint, refuse_query
from kernel.http.envelopes import ResponseEnvelope
from kernel.http.pagination import PAGE_SIZE, fetch_page
from kernel.problems import StateUnfit
from registry.discovery import api as discovery_api
from registry.discovery import selectors as discovery_selectors
from registry.models import InstallationState, ToolState, VersionState
from registry.tools import selectors
from registry.tools.deprecation import deprecation_headers, deprecation_warnings, find_retirement
from registry.versions import services
from registry.versions.api import VersionChangeSerializer
from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from rest_framework.request import Request

    from registry.models import Installation, Tool, ToolVersion
    from unitools.manifest import Manifest

NO_TOOL = "No tool matches. Without a `state` filter only tools that can be called are listed."

# A tool as agents see it: what it is and how to call it. Without a version there is only the beginning.
_TOOL: dict[str, Any] = {
    "id": serializers.CharField(),
    "urn": serializers.CharField(),
    "state": serializers.ChoiceField(choices=ToolState.choices),
    "version": serializers.CharField(allow_null=True),
    "name": serializers.CharField(required=False, help_text="The last segment of the id."),
    "display_name": serializers.CharField(required=False),
    "description": serializers.CharField(required=False),
    "tags": serializers.ListField(child=serializers.CharField(), required=False),
    "side_effect": serializers.CharField(required=False),
    "safety_class": serializers.CharField(required=False),
    "needs_consent": serializers.BooleanField(required=False),
    "idempotency": serializers.CharField(required=False),
    "ttl_seconds": serializers.IntegerField(required=False, allow_null=True),
    "async": serializers.BooleanField(required=False),
    "sunset_on": serializers.DateField(required=False, allow_null=True, help_text="Of a deprecated tool."),
    "successor": serializers.CharField(required=False, allow_null=True, help_text="Of a deprecated tool."),
    "deprecation": serializers.CharField(required=False, help_text="Why it is deprecated."),
}
_WHOLE: dict[str, Any] = {
    "input_schema": serializers.JSONField(required=False),
    "output_schema": serializers.JSONField(required=False),
    "examples": serializers.ListField(
        child=serializers.CharField(), required=False, help_text="What people may ask for, in their words."
    ),
    "localizations": serializers.DictField(
        child=serializers.DictField(),
        required=False,
        help_text="By tag of a language: the display_name, description and examples that people read in it.",
    ),
    "manifest_digest": serializers.CharField(required=False),
    "build_digest": serializers.CharField(required=False),
}
TOOLS = build_envelope_serializer(
    "ToolPageEnvelope",
    inline_serializer(
        "ToolPage",
        {"tools": inline_serializer("Tool", _TOOL, many=True), "next": serializers.CharField(allow_null=True)},
    ),
)
TOOL = build_envelope_serializer("ToolEnvelope", inline_serializer("WholeTool", _TOOL | _WHOLE))


def tool_json(row: Installation, manifest: Manifest | None, *, whole: bool = False) -> dict[str, Any]:
    """The public view of what the tenant has installed; ``whole`` adds the schemas."""
    tool = row.tool
    state = ToolState.PAUSED if row.state == InstallationState.PAUSED else tool.state
    data: dict[str, Any] = {"id": row.name, "urn": tool.urn, "state": state, "version": None}
    if manifest is not None:
        data |= {
            "version": manifest.version,
            "name": manifest.name,
            "display_name": manifest.display_name,
            "description": manifest.description,
            "tags": manifest.tags,
            "side_effect": manifest.side_effect,
            "safety_class": manifest.safety_class,
            "needs_consent": manifest.needs_consent,
            "idempotency": manifest.idempotency,
            "ttl_seconds": manifest.ttl_seconds,
            "async": manifest.is_async,
        }
        if whole and (version := row.version) is not None:
            data |= {
                "input_schema": manifest.input_schema,
                "output_schema": manifest.output_schema,
                "examples": manifest.examples,
                "localizations": manifest.localizations,
                "manifest_digest": version.manifest_digest,
                "build_digest": version.build_digest,
            }
    if tool.state == ToolState.DEPRECATED:
        data |= {
            "sunset_on": tool.sunset_on.isoformat() if tool.sunset_on else None,
            "successor": tool.successor or None,
            "deprecation": tool.state_reason,
        }
    return data


def registered_json(tool: Tool) -> dict[str, Any]:
    return {"id": tool.name, "urn": tool.urn, "state": tool.state, "version": None}


class SubmittedSerializer(serializers.Serializer[Any]):
    """A version that waits for its review, with what it changes and what was noticed about it."""

    id = serializers.CharField()
    tool = serializers.CharField()
    version = serializers.CharField()
    review_state = serializers.ChoiceField(VersionState.choices)
    manifest_digest = serializers.CharField()
    build_digest = serializers.CharField()
    compared_with = serializers.CharField(allow_null=True)
    changes = VersionChangeSerializer(many=True)
    findings = serializers.ListField(child=serializers.DictField())


def submitted_json(version: ToolVersion) -> dict[str, Any]:
    return {
        "id": version.wire_id,
        "tool": version.tool.name,
        "version": version.version,
        "review_state": version.review_state,
        "manifest_digest": version.manifest_digest,
        "build_digest": version.build_digest,
        "compared_with": version.base.version if version.base else None,
        "changes": version.changes,
        "findings": version.warnings,
    }


SUBMITTED = build_envelope_serializer("SubmittedVersionEnvelope", SubmittedSerializer())


class ToolListView(Endpoint):
    """Discover tools, or submit a version."""

    required_scope = {"GET": "tools:read", "POST": "tools:register"}
    query = discovery_api.ToolQuerySerializer

    @extend_schema(
        operation_id="list_tools",
        responses={
            200: PolymorphicProxySerializer(
                component_name="ToolsAnswer",
                serializers=[TOOLS, discovery_api.RENDERED_TOOLS],
                resource_type_field_name=None,
            )
        },
    )
    def get(self, request: Request) -> HttpResponse:
        if discovery_api.is_asked_for(self.asked):
            return discovery_api.rendered_tools(request, self.asked)
        filters = {name: self.asked.get(name, "") for name in discovery_selectors.FILTERS}
        by, after, limit = get_caller(request), self.asked.get("after", ""), self.asked.get("limit", PAGE_SIZE)
        registered = filters["state"] == ToolState.REGISTERED
        if after.startswith("ins_" if registered else "tol_"):
            raise StateUnfit.at("/after", "This cursor is of the list without this state, or of that with it.")
        if registered:  # submitted here and never enabled: nothing is installed yet
            own = fetch_page(selectors.find_tools(by=by, **filters), prefix="tol", after=after, limit=limit)
            data = {"tools": [registered_json(tool) for tool in own.rows], "next": own.next or None}
            return Response(ResponseEnvelope(data=data).to_json())
        page, manifests = discovery_selectors.load_shown_page(by=by, after=after, limit=limit, **filters)
        warnings = () if page.rows or page.next or after else (NO_TOOL,)
        if self.asked.get("view") == "llm":
            granted = discovery_selectors.filter_granted(by, page.rows, manifests)
            tools = [
                discovery_selectors.build_model_view(manifests[row.version_id]) for row in granted if row.version_id
            ]
        else:
            tools = [tool_json(row, manifests.get(row.version_id) if row.version_id else None) for row in page.rows]
        return Response(ResponseEnvelope(data={"tools": tools, "next": page.next or None}, warnings=warnings).to_json())

    @extend_schema(operation_id="submit_tool_version", request=OpenApiTypes.OBJECT, responses={201: SUBMITTED})
    def post(self, request: Request) -> Response:
        version = services.submit_version(document=request.data, by=get_caller(request))
        return Response(
            ResponseEnvelope(data=submitted_json(version)).to_json(),
            status=201,
            headers={"Location": f"/api/v1/tools/{version.tool.name}"},
        )


class ToolView(Endpoint):
    """One tool with its schemas."""

    required_scope = "tools:read"

    @extend_schema(operation_id="read_tool", responses={200: TOOL})
    def get(self, request: Request, tool_id: str) -> Response:
        row = discovery_selectors.get_installed(tool_id, by=get_caller(request))
        manifests = discovery_selectors.load_manifests([row.version_id] if row.version_id else [])
        manifest = manifests.get(row.version_id) if row.version_id else None
        retirement = find_retirement(row.tool)
        envelope = ResponseEnvelope(
            data=tool_json(row, manifest, whole=True), warnings=tuple(deprecation_warnings(retirement, manifest))
        )
        return Response(envelope.to_json(), headers=deprecation_headers(retirement))


@public
@refuse_query
def manifest_schema_view(request: HttpRequest) -> JsonResponse:
    """The JSON Schema of manifests, as a document of its own."""
    del request
    return JsonResponse(manifest_schema(), content_type="application/schema+json")
