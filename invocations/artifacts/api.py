"""Artifacts over REST: fetched and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.connections.rights import find_ended_connections
from access.models import Agent
from invocations.artifacts import services as artifacts
from invocations.artifacts.links import check_link
from invocations.artifacts.problems import ArtifactLinkInvalid
from invocations.kept_callers import build_used_connection
from invocations.models import Invocation
from kernel.database.tenancy import act_for
from kernel.http.api_requests import get_caller
from kernel.http.base_serializers import LinkSerializer
from kernel.http.endpoints import Endpoint
from kernel.principal import ActorKind, Principal

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

READ = "invocations:read"
# What a browser does nothing with but save it; anything else is sent as bytes without a meaning.
HARMLESS = frozenset(
    {"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "application/json", "application/zip"}
    | {"text/csv", "text/plain"}
)  # fmt: skip


def build_download(name: str, media_type: str, content: bytes, *, inline: bool = False) -> HttpResponse:
    """Never as a page: whatever it claims to be, it is saved, and runs nowhere."""
    response = HttpResponse(content, content_type=media_type if media_type in HARMLESS else "application/octet-stream")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response.headers["Content-Disposition"] = content_disposition_header(as_attachment=not inline, filename=name) or ""
    return response


def authenticate_link(request: Request, artifact_id: UUID) -> Principal:
    """Who has the link acts for the agent whose call it was, as long as that agent may do anything, and the
    program through which it called.
    """
    tenant_id, agent_id = check_link(artifact_id, {name: str(text) for name, text in request.query_params.items()})
    act_for(tenant_id)
    agent = Agent.objects.filter(pk=agent_id, tenant_id=tenant_id, disabled_at=None).first()
    if agent is None:
        raise ArtifactLinkInvalid("The agent whose call this was is disabled.", remedy="Ask an operator to enable it.")
    made = Invocation.objects.filter(tenant_id=tenant_id, artifacts=artifact_id).only("connection_id").first()
    program = made.connection_id if made is not None else None
    if program is not None and find_ended_connections([program]):
        raise ArtifactLinkInvalid(
            "The program that made this call is disconnected.", remedy="Get the artifact with the key of the agent."
        )
    return Principal(
        kind=ActorKind.AGENT,
        id=agent.wire_id,
        name=agent.name,
        tenant_id=tenant_id,
        allowed=frozenset({READ}),
        agent_id=agent.pk,
        connection=build_used_connection(program, tenant_id=tenant_id) if program else None,
    )


class ArtifactQuerySerializer(LinkSerializer):
    thumbnail = serializers.BooleanField(
        required=False, default=False, help_text="A small PNG of an image in its place."
    )


class ArtifactView(Endpoint):
    """What one of the agent's own calls has left. With the key of the agent, or by the link that its answer gives, for a day."""

    required_scope = {"GET": READ, "DELETE": "invocations:create"}
    query = ArtifactQuerySerializer

    def perform_authentication(self, request: Request) -> None:
        if request.method == "GET" and "signature" in request.query_params:
            request.user = authenticate_link(request, self.kwargs["artifact_id"])  # type: ignore[assignment]
        else:
            super().perform_authentication(request)

    @extend_schema(
        operation_id="read_artifact",
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request, artifact_id: UUID) -> HttpResponse:
        thumbnail = self.asked["thumbnail"]
        via = "link" if "signature" in self.asked else "key"
        row, content = artifacts.read_artifact(
            artifact_id=artifact_id, by=get_caller(request), via=via, thumbnail=thumbnail
        )
        if thumbnail:
            return build_download(f"{row.name}.png", "image/png", content)
        return build_download(row.name, row.media_type, content)

    @extend_schema(operation_id="remove_artifact", responses={204: None})
    def delete(self, request: Request, artifact_id: UUID) -> Response:
        artifacts.remove_artifact(artifact_id=artifact_id, by=get_caller(request))
        return Response(status=204)
