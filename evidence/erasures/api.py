"""Erasures over REST: persons erased, and the times set that values are kept for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response

from evidence import retention
from evidence.erasures import services as erasures
from evidence.erasures.holders import CLASSES
from evidence.models import Erasure, ErasureState
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoint_schemas import MORE_SPACES
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

ERASE, RETAIN = "evidence:erase", "evidence:retain"
EXAMPLE = OpenApiExample(
    "First the preview, then the same with its `confirm`",
    value={"user_id": "user-4711", "reason": "The person has asked for it, ticket 812."},
    request_only=True,
)


_SEEN, _WIDE = rf"[^\s\u0000{MORE_SPACES}]", r"[\u0800-\ud7ff\ue000-\uffff]"


@extend_schema_field(
    {
        "type": "string",
        "maxLength": erasures.MAX_USER_ID,
        # Four bytes: four letters of ASCII, or fewer of others.
        "pattern": rf"^({_SEEN}[^\u0000]{{2,}}{_SEEN}|{_WIDE}{_SEEN}|{_SEEN}{_WIDE})$",
    }
)
class PersonNameField(serializers.CharField):
    """What people write of somebody; too short a one would stand in other words."""


@extend_schema_field({"type": "string", "maxLength": 500, "pattern": rf"^\s*{_SEEN}[^\u0000]{{8,}}{_SEEN}\s*$"})
class ErasureReasonField(serializers.CharField):
    """As much as whoever looks at stored values must say."""


class NewErasureSerializer(StrictSerializer):
    user_id = serializers.CharField(max_length=erasures.MAX_USER_ID, help_text="As callers send it.")
    names = serializers.ListField(
        child=PersonNameField(max_length=erasures.MAX_USER_ID),
        required=False,
        default=list,
        max_length=erasures.MAX_NAMES,
        help_text="What else people write of them, such as their name. Reasons and notes that hold one of these, or the id, go.",
    )
    reason = ErasureReasonField(max_length=500, help_text="Kept with the erasure; do not name the person in it.")
    confirm = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=500,
        help_text="Of the preview. Without: only a preview.",
    )


class ErasureSerializer(serializers.Serializer[Any]):
    id = serializers.CharField(allow_null=True, help_text="None: this is a preview, and nothing was changed.")
    state = serializers.ChoiceField([*ErasureState.values, "preview"])
    concerns = serializers.DictField(child=serializers.IntegerField(), help_text="What there is, or what went.")
    confirm = serializers.CharField(
        allow_null=True, help_text="Send it with the same user_id and names within 15 minutes."
    )
    asked_at = serializers.DateTimeField(allow_null=True)
    erased_at = serializers.DateTimeField(allow_null=True, help_text="From then nothing can be read.")
    finished_at = serializers.DateTimeField(allow_null=True)


ONE, MANY = (
    build_envelope_serializer("ErasureEnvelope", ErasureSerializer()),
    build_page_serializer("ErasurePage", "erasures", ErasureSerializer),
)


def erasure_json(row: Erasure) -> dict[str, Any]:
    return {
        "id": row.wire_id,
        "state": row.state,
        "concerns": row.counts,
        "confirm": None,
        "asked_at": row.asked_at.isoformat(),
        "erased_at": row.erased_at.isoformat() if row.erased_at else None,
        "finished_at": row.finished_at.isoformat() if row.finished_at else None,
    }


class ErasureListView(Endpoint):
    """Persons who were forgotten, without their ids; and forgetting one."""

    required_scope = ERASE
    query = PageSerializer
    cursor = "era"

    @extend_schema(operation_id="list_erasures", responses={200: MANY})
    def get(self, request: Request) -> Response:
        rows = Erasure.objects.filter(tenant_id=get_caller(request).tenant_id)
        page = self.page_of(rows)
        data = {"erasures": [erasure_json(row) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(
        operation_id="erase_subject",
        request=NewErasureSerializer,
        responses={200: ONE, 202: ONE},
        examples=[EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """Without `confirm` a preview (200); with it the erasure begins (202), and nothing brings the values back."""
        by, said = get_caller(request), read_body(request, NewErasureSerializer)
        if said["confirm"]:
            row = erasures.erase_subject(by=by, **said)
            answer = Response(ResponseEnvelope(data=erasure_json(row)).to_json(), status=202)
            answer.headers["Location"] = f"/api/v1/evidence/erasures/{row.wire_id}"
            return answer
        found, confirm = erasures.preview_erasure(user_id=said["user_id"], names=said["names"], by=by)
        data: dict[str, Any] = {"id": None, "state": "preview", "concerns": dict(found), "confirm": confirm}
        data |= {"asked_at": None, "erased_at": None, "finished_at": None}
        return Response(ResponseEnvelope(data=data).to_json())


class ErasureView(Endpoint):
    """How far an erasure is."""

    required_scope = ERASE

    @extend_schema(operation_id="read_erasure", responses={200: ONE})
    def get(self, request: Request, erasure_id: UUID) -> Response:
        row = Erasure.objects.get(pk=erasure_id, tenant_id=get_caller(request).tenant_id)
        return Response(ResponseEnvelope(data=erasure_json(row)).to_json())


class KeptDaysSerializer(serializers.Serializer[Any]):
    days = serializers.DictField(
        child=serializers.IntegerField(allow_null=True, min_value=retention.LEAST_DAYS, max_value=retention.MOST_DAYS),
        help_text="By class: inputs, outputs, errors, logs, segments, artifacts, files. None: kept without an end.",
    )


class RetainedDaysField(serializers.DictField):
    """Days by class."""

    child = serializers.IntegerField(allow_null=True, min_value=retention.LEAST_DAYS, max_value=retention.MOST_DAYS)


class RetainedDaysSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Names the classes, which packages above this one add when they are loaded."""

    target_class = RetainedDaysField

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        days = auto_schema._map_serializer_field(self.target.child, direction)
        return {"type": "object", "properties": dict.fromkeys(CLASSES, days), "additionalProperties": False}


class RetentionSerializer(StrictSerializer):
    """Classes that are not named keep their time."""

    days = RetainedDaysField(help_text="None: kept without an end.")


TIMES = build_envelope_serializer("RetentionEnvelope", KeptDaysSerializer())


class RetentionView(Endpoint):
    """How many days values are kept, by class."""

    required_scope = RETAIN
    conditional = True

    @extend_schema(operation_id="read_retention", responses={200: TIMES})
    def get(self, request: Request) -> Response:
        return Response(ResponseEnvelope(data={"days": retention.load_times(get_caller(request).tenant_id)}).to_json())

    @extend_schema(operation_id="set_retention", request=RetentionSerializer, responses={200: TIMES})
    def put(self, request: Request) -> Response:
        days = retention.set_retention(days=read_body(request, RetentionSerializer)["days"], by=get_caller(request))
        return Response(ResponseEnvelope(data={"days": days}).to_json())
