"""How do agents find tools, and how do authors register them over REST?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, JsonResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from registry import selectors, services
from registry.models import ToolState
from toolhub.kernel.api import caller
from toolhub.kernel.console import public
from toolhub.kernel.envelopes import ResponseEnvelope
from toolhub.kernel.pagination import page_of
from toolhub.kernel.problems import SchemaInvalid
from unitools.manifest import manifest_schema

if TYPE_CHECKING:
    from rest_framework.request import Request

    from registry.models import Tool


class ToolSerializer(serializers.Serializer[Any]):
    """A tool as agents see it: what it is and how to call it."""

    id = serializers.CharField()
    urn = serializers.CharField()
    state = serializers.ChoiceField(choices=ToolState.choices)
    version = serializers.CharField(allow_null=True)
    display_name = serializers.CharField()
    description = serializers.CharField()
    tags = serializers.ListField(child=serializers.CharField())
    side_effect = serializers.CharField()
    safety_class = serializers.CharField()
    needs_consent = serializers.BooleanField()


def tool_json(tool: Tool, *, whole: bool = False) -> dict[str, Any]:
    """The public view; ``whole`` adds the schemas."""
    data: dict[str, Any] = {"id": tool.name, "urn": tool.urn, "state": tool.state, "version": None}
    if tool.current is not None:
        manifest = tool.current.view
        data |= {
            "version": manifest.version,
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
        if whole:
            data |= {
                "input_schema": manifest.input_schema,
                "output_schema": manifest.output_schema,
                "manifest_digest": tool.current.manifest_digest,
                "build_digest": tool.current.build_digest,
            }
    if tool.state == ToolState.DEPRECATED:
        data |= {"sunset_on": tool.sunset_on.isoformat() if tool.sunset_on else None, "deprecation": tool.state_reason}
    return data


class ToolListView(APIView):
    """Discover tools, or submit a version."""

    required_scope = {"GET": "tools:read", "POST": "tools:register"}

    @extend_schema(
        operation_id="list_tools",
        parameters=[OpenApiParameter(name, str) for name in (*selectors.FILTERS, "after")],
        responses={200: ToolSerializer(many=True)},
    )
    def get(self, request: Request) -> Response:
        unknown = sorted(set(request.query_params) - {*selectors.FILTERS, "after"})
        if unknown:
            raise SchemaInvalid(f"There is no filter {unknown[0]}. The filters are {', '.join(selectors.FILTERS)}.")
        filters = {name: request.query_params.get(name, "") for name in selectors.FILTERS}
        tools = selectors.find_tools(by=caller(request), **filters)
        if not filters["state"]:
            tools = tools.filter(state=ToolState.ENABLED)
        page = page_of(tools, prefix="tol", after=request.query_params.get("after", ""))
        warnings = () if page.rows else ("No tool matches. Without a `state` filter only enabled tools are listed.",)
        data = {"tools": [tool_json(tool) for tool in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data, warnings=warnings).to_json())

    @extend_schema(
        operation_id="submit_tool_version", request=OpenApiTypes.OBJECT, responses={201: OpenApiTypes.OBJECT}
    )
    def post(self, request: Request) -> Response:
        version = services.submit_version(document=request.data, by=caller(request))
        data = {
            "id": version.wire_id,
            "tool": version.tool.name,
            "version": version.version,
            "review_state": version.review_state,
            "manifest_digest": version.manifest_digest,
            "build_digest": version.build_digest,
            "findings": version.warnings,
        }
        return Response(
            ResponseEnvelope(data=data).to_json(),
            status=201,
            headers={"Location": f"/api/v1/tools/{version.tool.name}"},
        )


class ToolView(APIView):
    """One tool with its schemas."""

    required_scope = "tools:read"

    @extend_schema(operation_id="read_tool", responses={200: ToolSerializer})
    def get(self, request: Request, tool_id: str) -> Response:
        tool = selectors.get_tool(tool_id, tenant_id=caller(request).tenant_id)
        return Response(ResponseEnvelope(data=tool_json(tool, whole=True)).to_json())


@public
def manifest_schema_view(request: HttpRequest) -> JsonResponse:
    """The JSON Schema of manifests, as a document of its own."""
    del request
    return JsonResponse(manifest_schema(), content_type="application/schema+json")
