"""Halts over REST: kill switches thrown and lifted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from access.halts import services as halts
from access.halts.services import TOOL_ID
from access.models import Halt, Reach
from kernel.http.actions import ActionTable
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    IdField,
    PageSerializer,
    PatternField,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from registry.halt_targets import throw_halt

if TYPE_CHECKING:
    from rest_framework.request import Request

SCOPE = "halts:throw"


class HaltSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    reach = serializers.ChoiceField(Reach.choices)
    target = serializers.CharField(allow_null=True)
    reason = serializers.CharField()
    thrown_by = serializers.CharField()
    thrown_at = serializers.DateTimeField()
    lifted_by = serializers.CharField(allow_null=True)
    lifted_at = serializers.DateTimeField(allow_null=True)


class ThrowSerializer(StrictSerializer):
    reach = serializers.ChoiceField(Reach.choices, help_text="How far it goes.")
    target = serializers.CharField(
        max_length=128,
        required=False,
        default="",
        allow_blank=True,
        help_text="The agent (agt_…), the tool's id or the version (tvn_…); none for the tenant and the hub.",
    )
    reason = serializers.CharField(max_length=halts.MAX_REASON, help_text="Kept as evidence; callers are told it.")


OF_AGENT, OF_TOOL, OF_VERSION = [Reach.AGENT.value], [Reach.TOOL.value], [Reach.VERSION.value]


class ThrowForAllSerializer(ThrowSerializer):
    """For the tenant, or the hub."""

    reach = serializers.ChoiceField([Reach.TENANT.value, Reach.HUB.value])
    target = None  # type: ignore[assignment]


class ThrowForAgentSerializer(ThrowSerializer):
    reach = serializers.ChoiceField(OF_AGENT)
    target = IdField("agt")


class ThrowForToolSerializer(ThrowSerializer):
    reach = serializers.ChoiceField(OF_TOOL)
    target = PatternField(f"^{TOOL_ID.pattern}$", wanted="the id of a tool", max_length=128)


class ThrowForVersionSerializer(ThrowSerializer):
    reach = serializers.ChoiceField(OF_VERSION)
    target = IdField("tvn")


THROW = PolymorphicProxySerializer(
    "Throw",
    [ThrowForAllSerializer, ThrowForAgentSerializer, ThrowForToolSerializer, ThrowForVersionSerializer],
    resource_type_field_name=None,
)
ONE, MANY = (
    build_envelope_serializer("HaltEnvelope", HaltSerializer()),
    build_page_serializer("HaltPage", "halts", HaltSerializer),
)


def halt_json(halt: Halt) -> dict[str, Any]:
    return {
        "id": halt.wire_id,
        "reach": halt.reach,
        "target": halt.target or None,
        "reason": halt.reason,
        "thrown_by": halt.thrown_by,
        "thrown_at": halt.thrown_at.isoformat(),
        "lifted_by": halt.lifted_by or None,
        "lifted_at": halt.lifted_at.isoformat() if halt.lifted_at else None,
    }


class HaltListView(Endpoint):
    """The kill switches that were thrown for this tenant and for the hub; throwing one."""

    required_scope = SCOPE
    query = PageSerializer
    cursor = "hlt"

    @extend_schema(operation_id="list_halts", responses={200: MANY})
    def get(self, request: Request) -> Response:
        rows = Halt.objects.visible_to(get_caller(request))
        page = self.page_of(rows)
        data = {"halts": [halt_json(row) for row in page.rows], "next": page.next or None}
        return Response(ResponseEnvelope(data=data).to_json())

    @extend_schema(operation_id="throw_halt", request=THROW, responses={201: ONE})
    def post(self, request: Request) -> Response:
        data = read_body(request, ThrowSerializer)
        halt = throw_halt(reach=Reach(data.pop("reach")), by=get_caller(request), **data)
        return Response(ResponseEnvelope(data=halt_json(halt)).to_json(), status=201)


HaltLiftView = ActionTable(__name__, SCOPE, ONE, halt_json).build_view(
    "lift_halt", halts.lift_halt, "Let calls through again."
)
