"""Secrets over REST: set and removed. No answer ever holds a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from registry.installations.setup import SECRET_NAME
from registry.models import Secret
from registry.secrets import services as secrets

if TYPE_CHECKING:
    from rest_framework.request import Request


class SecretSerializer(serializers.Serializer[Any]):
    """What may be known of a secret."""

    id = serializers.CharField()
    name = serializers.CharField()
    number = serializers.IntegerField(help_text="1, and one more with each replacement.")
    set_by = serializers.CharField()
    set_at = serializers.DateTimeField()


@extend_schema_field(
    {
        "type": "string",
        "writeOnly": True,
        "maxLength": secrets.MAX_BYTES,
        "pattern": r"^[^\s\u0000-\u001f][^\u0000-\u0008]{6,}[^\s\u0000-\u001f]$",
    }
)
class SecretTextField(serializers.CharField):
    """The value of a secret, pasted whole; measured in bytes."""


class SecretValueSerializer(StrictSerializer):
    value = SecretTextField(
        min_length=secrets.MIN_CHARACTERS,
        max_length=secrets.MAX_BYTES,
        trim_whitespace=False,
        style={"input_type": "password"},
        write_only=True,
    )


ONE, MANY = (
    build_envelope_serializer("SecretEnvelope", SecretSerializer()),
    build_page_serializer("SecretPage", "secrets", SecretSerializer),
)


def secret_json(secret: Secret) -> dict[str, Any]:
    return {
        "id": secret.wire_id,
        "name": secret.name,
        "number": secret.number,
        "set_by": secret.set_by,
        "set_at": secret.set_at.isoformat(),
    }


class SecretListView(Endpoint):
    """The names of the tenant's secrets."""

    required_scope = "tools:operate"
    query = PageSerializer
    cursor = "sec"

    @extend_schema(operation_id="list_secrets", responses={200: MANY})
    def get(self, request: Request) -> Response:
        rows = Secret.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        data = {"secrets": [secret_json(row) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())


class SecretView(Endpoint):
    """Set a secret, or replace its value; remove one that nothing uses."""

    required_scope = "tools:operate"

    @extend_schema(
        operation_id="set_secret",
        request=SecretValueSerializer,
        responses={200: ONE, 201: ONE},
        parameters=[OpenApiParameter("name", str, OpenApiParameter.PATH, pattern=f"^{SECRET_NAME.pattern}$")],
    )
    def put(self, request: Request, name: str) -> Response:
        row = secrets.set_secret(name=name, by=get_caller(request), **read_body(request, SecretValueSerializer))
        status = 201 if row.number == 1 else 200
        return Response(ResponseEnvelope(data=secret_json(row)).to_json(), status=status)

    @extend_schema(operation_id="remove_secret", responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        secrets.remove_secret(name=name, by=get_caller(request))
        return Response(status=204)
