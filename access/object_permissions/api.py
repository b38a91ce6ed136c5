"""Object permissions over REST: on a single tool or agent. By people only, as everything that people may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers

from access.members import services as members
from access.members.api import MANAGE, MEMBER, PeopleView, answer_member
from access.models import Agent
from access.roles import ON_AGENT, ON_TOOL
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import StrictSerializer
from kernel.ids import decode
from kernel.problems import NotFound
from registry.models import Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request
    from rest_framework.response import Response

    from kernel.principal import Principal


class MemberExceptionSerializer(StrictSerializer):
    permission = serializers.ChoiceField([*ON_TOOL, *ON_AGENT])
    tool = serializers.CharField(max_length=128, required=False, help_text="A tool that the tenant publishes.")
    agent = serializers.CharField(max_length=40, required=False, help_text="Or one of its agents, agt_…")

    def validate(self, attrs: Any) -> Any:
        if ("tool" in attrs) == ("agent" in attrs):
            raise serializers.ValidationError({"tool": ["Name a tool or an agent; one of the two."]})
        return attrs


ONE_TOOL = OpenApiExample(
    "One tool", value={"permission": "tools.operate", "tool": "commerce.cart.add"}, request_only=True
)


def _thing(said: dict[str, Any], *, by: Principal) -> Any:
    if "tool" in said:
        return Tool.objects.visible_to(by).get(name=said["tool"])
    try:
        return Agent.objects.get(pk=decode("agt", said["agent"]), tenant_id=by.tenant_id)
    except ValueError as error:
        raise NotFound("There is no agent with this id.") from error


def _change(request: Request, user_id: int, service: Callable[..., None]) -> Response:
    by = get_caller(request)
    members.find_members(by.tenant_id).get(pk=user_id)
    said = read_body(request, MemberExceptionSerializer)
    service(user_id=user_id, permission=said["permission"], on=_thing(said, by=by), by=by)
    return answer_member(request, user_id)


class MemberExceptionView(PeopleView):
    """Give somebody a permission on one tool or agent, and on no other. Only owners do."""

    required_scope = {"POST": None}
    required_permission = {"POST": MANAGE}

    @extend_schema(
        operation_id="give_member_exception",
        request=MemberExceptionSerializer,
        responses={200: MEMBER},
        examples=[ONE_TOOL],
    )
    def post(self, request: Request, user_id: int) -> Response:
        return _change(request, user_id, members.give_permission)


class MemberExceptionTakeView(PeopleView):
    """Take a permission on one tool or agent back. Only owners do."""

    required_scope = {"POST": None}
    required_permission = {"POST": MANAGE}

    @extend_schema(operation_id="take_member_exception", request=MemberExceptionSerializer, responses={200: MEMBER})
    def post(self, request: Request, user_id: int) -> Response:
        return _change(request, user_id, members.take_permission)
