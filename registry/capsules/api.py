"""Capsules over REST: how they are uploaded, and the keys that sign them managed."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

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
from registry.capsules import publisher_keys
from registry.capsules import services as capsules
from registry.capsules.models import Capsule, PublisherKey
from registry.models import VersionState
from registry.problems import CapsuleSignatureInvalid
from registry.tools.api import SubmittedSerializer, submitted_json

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

UPLOAD, KEYS = "tools:register", "publishers:manage"
SIGNATURE = "Capsule-Signature"


class SignerSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    key_id = serializers.CharField(help_text="What signatures name the key by: 64 hexadecimal digits.")


class CapsuleSerializer(serializers.Serializer[Any]):
    """An archive that versions were registered from."""

    id = serializers.CharField()
    digest = serializers.CharField(help_text="SHA-256 of its bytes, and the build digest of its versions.")
    size = serializers.IntegerField(help_text="Bytes.")
    package = serializers.CharField()
    signed_by = SignerSerializer(allow_null=True, help_text="Who signed it, also when the key was revoked since.")
    uploaded_by = serializers.CharField()
    uploaded_at = serializers.DateTimeField()


class RegisteredSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    tool = serializers.CharField()
    version = serializers.CharField()
    review_state = serializers.ChoiceField(VersionState.choices)


class UploadedCapsuleSerializer(CapsuleSerializer):
    versions = SubmittedSerializer(many=True)


class WholeCapsuleSerializer(CapsuleSerializer):
    versions = RegisteredSerializer(many=True)


class PublisherKeySerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    key_id = serializers.CharField(help_text="What signatures name the key by: 64 hexadecimal digits.")
    public_key = serializers.CharField(help_text="PEM.")
    state = serializers.ChoiceField(["in_force", "revoked"])
    added_by = serializers.CharField()
    added_at = serializers.DateTimeField()
    revoked_by = serializers.CharField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    reason = serializers.CharField(allow_null=True, help_text="Why it was revoked.")


# 12 bytes that say Ed25519, and the 32 of the key, in base64.
PEM = r"^-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\n-----END PUBLIC KEY-----\n?$"


@extend_schema_field({"type": "string", "pattern": PEM})
class PemField(serializers.CharField):
    """A public key; what else is wrong with it, the service says."""


class NewPublisherKeySerializer(StrictSerializer):
    name = serializers.CharField(max_length=publisher_keys.MAX_NAME)
    public_key = PemField(
        max_length=publisher_keys.MAX_PEM, help_text="An Ed25519 key as `openssl pkey -pubout` prints it."
    )


class PublishingSerializer(serializers.Serializer[Any]):
    signatures_required = serializers.BooleanField(help_text="Whether capsules that nobody signed are refused.")


class ChangedPublishingSerializer(StrictSerializer, PublishingSerializer):
    """What the tenant asks of capsules."""


UPLOADED = build_envelope_serializer("UploadedCapsuleEnvelope", UploadedCapsuleSerializer())
CAPSULE = build_envelope_serializer("CapsuleEnvelope", WholeCapsuleSerializer())
CAPSULES = build_page_serializer("CapsulePage", "capsules", CapsuleSerializer)
KEY = build_envelope_serializer("PublisherKeyEnvelope", PublisherKeySerializer())
MANY_KEYS = build_page_serializer("PublisherKeyPage", "keys", PublisherKeySerializer)
PUBLISHING = build_envelope_serializer("PublishingEnvelope", PublishingSerializer())
NEW_KEY = OpenApiExample(
    "A key",
    value={
        "name": "release 2026",
        "public_key": "-----BEGIN PUBLIC KEY-----\n"
        "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n",
    },
    request_only=True,
)


def capsule_json(row: Capsule) -> dict[str, Any]:
    key = row.signed_by
    return {
        "id": row.wire_id,
        "digest": row.digest,
        "size": row.size,
        "package": row.package,
        "signed_by": {"id": key.wire_id, "name": key.name, "key_id": key.key_id} if key else None,
        "uploaded_by": row.uploaded_by,
        "uploaded_at": row.uploaded_at.isoformat(),
    }


def key_json(row: PublisherKey) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "name": row.name,
        "key_id": row.key_id,
        "public_key": row.public_key,
        "state": "revoked" if row.revoked_at else "in_force",
        "added_by": row.added_by,
        "added_at": row.added_at.isoformat(),
        "revoked_by": row.revoked_by or None,
        "revoked_at": row.revoked_at.isoformat() if row.revoked_at else None,
        "reason": row.revoke_reason or None,
    }


def _answer(data: Any, *, status: int = 200) -> Response:
    return Response(ResponseEnvelope(data=data).to_json(), status=status)


def _envelope(request: Request) -> bytes:
    try:
        return base64.b64decode(request.headers.get(SIGNATURE, "").encode("ascii"), validate=True)
    except (ValueError, binascii.Error) as error:
        raise CapsuleSignatureInvalid(
            f"The header {SIGNATURE} is not base64.", details={"problem": "NotAnEnvelope"}
        ) from error


class CapsuleListView(Endpoint):
    """The archives that versions came from, newest first; uploading one, which registers each manifest in it."""

    required_scope = UPLOAD
    query = PageSerializer
    cursor = "cap"

    @extend_schema(operation_id="list_capsules", responses={200: CAPSULES})
    def get(self, request: Request) -> Response:
        rows = (
            Capsule.objects.filter(tenant_id=get_caller(request).tenant_id).select_related("signed_by").defer("content")
        )
        page = self.page_of(rows)
        return _answer({"capsules": [capsule_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(
        operation_id="upload_capsule",
        request={"application/octet-stream": {"type": "string", "format": "capsule"}},
        parameters=[
            OpenApiParameter(
                SIGNATURE,
                {"type": "string", "format": "capsule-signature"},
                OpenApiParameter.HEADER,
                description="The DSSE envelope that `unitools pack --key` wrote beside the capsule, in base64. "
                "Without it the capsule counts as unsigned.",
            )
        ],
        responses={201: UPLOADED},
    )
    def post(self, request: Request) -> Response:
        content = request.read()  # not `data`: it is no JSON
        done = capsules.upload_capsule(content=content, envelope=_envelope(request), by=get_caller(request))
        data = capsule_json(done.capsule) | {"versions": [submitted_json(version) for version in done.versions]}
        return _answer(data, status=201)


class CapsuleView(Endpoint):
    """One archive and the versions that came from it."""

    required_scope = UPLOAD

    @extend_schema(operation_id="read_capsule", responses={200: CAPSULE})
    def get(self, request: Request, capsule_id: UUID) -> Response:
        rows = Capsule.objects.select_related("signed_by").defer("content")
        row = rows.get(pk=capsule_id, tenant_id=get_caller(request).tenant_id)
        versions = [
            {
                "id": version.wire_id,
                "tool": version.tool.name,
                "version": version.version,
                "review_state": version.review_state,
            }
            for version in row.versions.select_related("tool").defer("manifest").order_by("tool__name")
        ]
        return _answer(capsule_json(row) | {"versions": versions})


class CapsuleContentView(Endpoint):
    """The archive itself, byte for byte as it was uploaded."""

    required_scope = UPLOAD

    @extend_schema(
        operation_id="read_capsule_content", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY}
    )
    def get(self, request: Request, capsule_id: UUID) -> HttpResponse:
        row, content = capsules.read_capsule(capsule_id=capsule_id, by=get_caller(request))
        return content_response(row, content)


def content_response(row: Capsule, content: bytes) -> HttpResponse:
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": f'attachment; filename="{row.wire_id}.capsule"',
        "X-Content-Type-Options": "nosniff",
    }
    return HttpResponse(content, content_type="application/octet-stream", headers=headers)


class PublisherKeyListView(Endpoint):
    """The keys whose signatures count for what the tenant publishes, or did; adding one."""

    required_scope = KEYS
    query = PageSerializer
    cursor = "pbk"

    @extend_schema(operation_id="list_publisher_keys", responses={200: MANY_KEYS})
    def get(self, request: Request) -> Response:
        rows = PublisherKey.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        return _answer({"keys": [key_json(row) for row in page.rows], "next": page.next or None})

    @extend_schema(
        operation_id="add_publisher_key",
        request=NewPublisherKeySerializer,
        responses={201: KEY},
        examples=[NEW_KEY],
    )
    def post(self, request: Request) -> Response:
        data = read_body(request, NewPublisherKeySerializer)
        row = publisher_keys.add_publisher_key(name=data["name"], pem=data["public_key"], by=get_caller(request))
        return _answer(key_json(row), status=201)


PublisherKeyRevokeView = ActionTable(__name__, KEYS, KEY, key_json, renamed={"publisher_key_id": "key_id"}).build_view(
    "revoke_publisher_key",
    publisher_keys.revoke_publisher_key,
    "Believe a key no more, for good: what it signed counts as unsigned from the next call on.",
)


class PublishingView(Endpoint):
    """What the tenant asks of capsules before it takes them."""

    required_scope = KEYS
    conditional = True

    @extend_schema(operation_id="read_publishing", responses={200: PUBLISHING})
    def get(self, request: Request) -> Response:
        return _answer({"signatures_required": publisher_keys.signatures_required(get_caller(request).tenant_id)})

    @extend_schema(operation_id="change_publishing", request=ChangedPublishingSerializer, responses={200: PUBLISHING})
    def put(self, request: Request) -> Response:
        data = read_body(request, ChangedPublishingSerializer)
        row = publisher_keys.change_publishing(signatures_required=data["signatures_required"], by=get_caller(request))
        return _answer({"signatures_required": row.signatures_required})
