"""Clients that are entered by hand, over REST. A secret is answered once, and never again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from access.clients import services as clients
from access.oauth.clients import MAX_NAME
from access.oauth.redirect_uris import MAX_URI, MAX_URIS, URI_PATTERN
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from rest_framework.request import Request

    from access.models import EnteredClient

SCOPE = "agents:manage"


class EnteredClientSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    client_id = serializers.CharField(help_text="What the program calls itself at the authorization server.")
    redirect_uris = serializers.ListField(child=serializers.CharField())
    confidential = serializers.BooleanField(help_text="Whether it has a secret.")
    connections = serializers.IntegerField(help_text="How many are open.")
    entered_by = serializers.CharField()
    entered_at = serializers.DateTimeField()


class EnteredClientWithSecretSerializer(EnteredClientSerializer):
    client_secret = serializers.CharField(allow_null=True, help_text="Answered this once; null where it keeps none.")


@extend_schema_field({"type": "string", "format": "program-name", "maxLength": MAX_NAME})
class ProgramNameField(serializers.CharField):
    """Words without quotation marks and without what nobody sees; the service says what is wrong with it."""


@extend_schema_field({"type": "string", "maxLength": MAX_URI, "pattern": URI_PATTERN})
class RedirectUriField(serializers.CharField):
    """Where an answer may be sent; the service says why it is not."""


class NewClientSerializer(StrictSerializer):
    name = ProgramNameField(max_length=MAX_NAME, help_text="As people read it when the program asks.")
    redirect_uris = serializers.ListField(
        child=RedirectUriField(max_length=MAX_URI),
        min_length=1,
        max_length=MAX_URIS,
        help_text="Where answers to it may go.",
    )
    confidential = serializers.BooleanField(
        required=False, default=False, help_text="Whether it keeps a secret, as a program on a server can."
    )


CLIENT = build_envelope_serializer("EnteredClientEnvelope", EnteredClientWithSecretSerializer())
CLIENTS = build_page_serializer("EnteredClientPage", "clients", EnteredClientSerializer)
ENTER = OpenApiExample(
    "A program on a server",
    value={"name": "Travel desk", "redirect_uris": ["https://travel.example.org/callback"], "confidential": True},
    request_only=True,
)


def client_json(row: EnteredClient, connections: int = 0) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "name": row.name,
        "client_id": row.client_id,
        "redirect_uris": row.redirect_uris,
        "confidential": row.is_confidential,
        "connections": connections,
        "entered_by": row.entered_by,
        "entered_at": row.entered_at.isoformat(),
    }


class ClientListView(Endpoint):
    """The programs that the tenant has entered by hand; entering one."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "cli"

    @extend_schema(operation_id="list_clients", responses={200: CLIENTS})
    def get(self, request: Request) -> Response:
        by = get_caller(request)
        page = self.page_of(clients.list_clients(by=by))
        open_now = clients.count_connections(page.rows, by=by)
        rows = [client_json(row, open_now.get(row.client_id, 0)) for row in page.rows]
        return Response(ResponseEnvelope(data={"clients": rows, "next": page.next or None}).to_json())

    @extend_schema(operation_id="enter_client", request=NewClientSerializer, responses={201: CLIENT}, examples=[ENTER])
    def post(self, request: Request) -> Response:
        row, secret = clients.enter_client(by=get_caller(request), **read_body(request, NewClientSerializer))
        data = client_json(row) | {"client_secret": secret or None}
        return Response(ResponseEnvelope(data=data).to_json(), status=201, headers={"Cache-Control": "no-store"})


ClientRemoveView = ActionTable[None](__name__, SCOPE, None, None).build_view(
    "remove_client", clients.remove_client, "Know the program no more, and end its connections."
)
