"""Model prefixes over REST: how operators read and set what stands before every conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StatedReasonSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from registry.model_prefixes.models import ModelPrefix
from registry.model_prefixes.services import MAX_CHARACTERS, find_prefix, set_prefix

if TYPE_CHECKING:
    from rest_framework.request import Request


class PrefixSerializer(serializers.Serializer[Any]):
    version = serializers.IntegerField(help_text="0: none was ever set.")
    text = serializers.CharField(allow_blank=True, help_text="Empty: nothing stands before a conversation.")
    digest = serializers.CharField(allow_null=True, help_text="As the Begin of each call has it.")
    reason = serializers.CharField(allow_null=True)
    set_by = serializers.CharField(allow_null=True)
    set_at = serializers.DateTimeField(allow_null=True)


class SetPrefixSerializer(StatedReasonSerializer):
    text = serializers.CharField(
        max_length=MAX_CHARACTERS,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Said to each model before all else.",
    )


ONE = build_envelope_serializer("ModelPrefixEnvelope", PrefixSerializer())
MANY = build_page_serializer("ModelPrefixPage", "versions", PrefixSerializer)


def show_prefix(row: ModelPrefix | None) -> dict[str, Any]:
    return {
        "version": row.number if row else 0,
        "text": row.text if row else "",
        "digest": row.digest if row else None,
        "reason": row.reason if row else None,
        "set_by": row.set_by if row else None,
        "set_at": row.set_at.isoformat() if row else None,
    }


class PrefixEndpoint(Endpoint):
    """For keys with the scope, and for people with the permission."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]
    required_scope = "models:manage"
    required_permission = "models.manage"


class ModelPrefixView(PrefixEndpoint):
    """What this tenant says to its models before all else; setting it, which counts with the next call."""

    conditional = True

    @extend_schema(operation_id="read_model_prefix", responses={200: ONE})
    def get(self, request: Request) -> Response:
        return Response(ResponseEnvelope(data=show_prefix(find_prefix(get_caller(request).tenant_id))).to_json())

    @extend_schema(operation_id="set_model_prefix", request=SetPrefixSerializer, responses={200: ONE})
    def put(self, request: Request) -> Response:
        row = set_prefix(by=get_caller(request), **read_body(request, SetPrefixSerializer))
        return Response(ResponseEnvelope(data=show_prefix(row)).to_json())


class ModelPrefixVersionListView(PrefixEndpoint):
    """Every version that there was, the newest first."""

    query = PageSerializer
    cursor = "mpx"

    @extend_schema(operation_id="list_model_prefix_versions", responses={200: MANY})
    def get(self, request: Request) -> Response:
        page = self.page_of(ModelPrefix.objects.filter(tenant_id=get_caller(request).tenant_id))
        data = {"versions": [show_prefix(row) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())
