"""Members over REST: the people of a tenant, their roles and their invitations.

Keys read. What changes what people may do is for people: an agent that could make somebody an operator could approve, as them,
what it asked for itself.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from django.contrib.contenttypes.models import ContentType
from drf_spectacular.utils import OpenApiExample, extend_schema
from guardian.models import UserObjectPermission
from rest_framework import serializers
from rest_framework.response import Response

from access.authentication.bearer import ApiKeyAuthentication
from access.authentication.sessions import PersonAuthentication
from access.members import invitations
from access.members import services as members
from access.models import Membership, Tenant
from access.object_permissions.rules import build_permission_data, load_object_permissions
from access.roles import PERMISSIONS, Role
from kernel.http.api_requests import get_caller, read_body
from kernel.http.base_serializers import (
    PageSerializer,
    PatternField,
    StatedReasonSerializer,
    StrictSerializer,
    build_envelope_serializer,
    build_page_serializer,
)
from kernel.http.endpoints import Endpoint
from kernel.http.envelopes import ResponseEnvelope
from kernel.ids import encode_user
from kernel.problems import SchemaInvalid

if TYPE_CHECKING:
    from rest_framework.request import Request

READ, SEE, MANAGE = "members:read", "members.view", "members.manage"
CURSOR = re.compile(r"usr_([0-9]{1,18})")


class MemberPageSerializer(PageSerializer):
    after = PatternField(
        f"^{CURSOR.pattern}$",
        wanted="an id of the form usr_…",
        required=False,
        help_text="The cursor `next` of the page before.",
    )


ROLES = [str(role) for role in Role]


class ExceptionSerializer(serializers.Serializer[Any]):
    permission = serializers.CharField()
    tool = serializers.CharField(required=False, help_text="The id of the tool on which it is held, or")
    agent = serializers.CharField(required=False, help_text="the agent (agt_…).")


class MemberSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    username = serializers.CharField()
    name = serializers.CharField(allow_blank=True)
    email = serializers.CharField(allow_blank=True)
    roles = serializers.ListField(child=serializers.ChoiceField(ROLES))
    permissions = serializers.ListField(
        child=serializers.ChoiceField(list(PERMISSIONS)), help_text="Given to this person alone, beside the roles."
    )
    exceptions = ExceptionSerializer(many=True, help_text="What they may do with a single tool or agent.")
    waits = serializers.BooleanField(help_text="Was invited and has not come yet.")
    last_login_at = serializers.DateTimeField(allow_null=True)


class InvitedMemberSerializer(serializers.Serializer[Any]):
    id = serializers.CharField()
    username = serializers.CharField()
    roles = serializers.ListField(child=serializers.ChoiceField(ROLES))


class InvitedSerializer(serializers.Serializer[Any]):
    member = InvitedMemberSerializer(help_text="What an inviter knows. The people of a tenant see more of each other.")
    delivery = serializers.ChoiceField(
        ["mail", "link", "none"],
        help_text="none: the hub knows this person already, so there is nothing to hand over.",
    )
    link = serializers.CharField(
        allow_null=True, help_text="Where they choose a password: once, within three days. Answered this once."
    )


class ChangedRolesSerializer(StrictSerializer):
    roles = serializers.ListField(
        child=serializers.ChoiceField(ROLES), min_length=1, max_length=len(ROLES), help_text="All that they have then."
    )
    reason = serializers.CharField(max_length=500)


class GivenPermissionSerializer(StrictSerializer):
    permission = serializers.ChoiceField(list(PERMISSIONS))


class InvitationSerializer(StrictSerializer):
    username = serializers.CharField(max_length=150, help_text="Or the user name of an existing user.")
    name = serializers.CharField(max_length=150, required=False, default="", allow_blank=True)
    email = serializers.EmailField(max_length=254, required=False, default="", allow_blank=True)
    roles = serializers.ListField(child=serializers.ChoiceField(ROLES), min_length=1, max_length=len(ROLES))


NINA = {
    "id": "usr_7",
    "username": "nina",
    "name": "Nina New",
    "email": "nina@example.org",
    "roles": ["reviewer"],
    "permissions": [],
    "exceptions": [],
    "waits": True,
    "last_login_at": None,
}
INVITED_NINA = {"id": "usr_7", "username": "nina", "roles": ["reviewer"]}
MEMBER = build_envelope_serializer("MemberEnvelope", MemberSerializer())
MEMBERS = build_page_serializer("MemberPage", "members", MemberSerializer)
WAITING = build_page_serializer("InvitationPage", "invitations", MemberSerializer)
INVITED = build_envelope_serializer("InvitedEnvelope", InvitedSerializer())
SHOWN = OpenApiExample("A reviewer", value={"ok": True, "data": NINA}, response_only=True)
INVITE = OpenApiExample(
    "A reviewer",
    value={"username": "nina", "name": "Nina New", "email": "nina@example.org", "roles": ["reviewer"]},
    request_only=True,
)
INVITED_BY_MAIL = OpenApiExample(
    "By mail",
    value={"ok": True, "data": {"member": INVITED_NINA, "delivery": "mail", "link": None}},
    response_only=True,
)
NEW_ROLES = OpenApiExample(
    "Review and audit", value={"roles": ["reviewer", "auditor"], "reason": "She audits now, too."}, request_only=True
)


def members_json(users: list[Any], tenant: Tenant) -> list[dict[str, Any]]:
    held, single = defaultdict(set), defaultdict(list)
    for user_id, role in Membership.objects.filter(tenant=tenant, user__in=users).values_list("user_id", "role"):
        held[user_id].add(role)
    of_tenant = UserObjectPermission.objects.filter(
        user__in=users, object_pk=str(tenant.pk), permission__content_type=ContentType.objects.get_for_model(Tenant)
    )
    for user_id, permission in of_tenant.values_list("user_id", "permission__codename"):
        single[user_id].append(permission)
    on_things = load_object_permissions(tenant.pk, users=[user.pk for user in users])
    return [
        {
            "id": encode_user(user.pk),
            "username": user.get_username(),
            "name": user.get_full_name(),
            "email": user.email,
            "roles": [role for role in ROLES if role in held[user.pk]],
            "permissions": sorted(single[user.pk]),
            "exceptions": [
                build_permission_data(permission, thing) for permission, thing in on_things.get(user.pk, [])
            ],
            "waits": members.has_never_come(user),
            "last_login_at": user.last_login.isoformat() if user.last_login else None,
        }
        for user in users
    ]


def member_json(user: Any, tenant: Tenant) -> dict[str, Any]:
    return members_json([user], tenant)[0]


def _tenant(request: Request) -> Tenant:
    return Tenant.objects.get(pk=get_caller(request).tenant_id)


def _page(request: Request, rows: Any, name: str, *, after: str = "", limit: int) -> Response:
    """Newest first. People have numbers for ids, so the cursor is read here."""
    tenant = _tenant(request)
    if after:
        found = CURSOR.fullmatch(after)
        if found is None:
            message = "The page cursor `after` is not one that this list gave out."
            raise SchemaInvalid(message, details={"findings": [{"pointer": "/after", "message": message}]})
        rows = rows.filter(pk__lt=int(found[1]))
    users = list(rows.order_by("-pk")[: limit + 1])
    following = encode_user(users[limit - 1].pk) if len(users) > limit else None
    data = {name: members_json(users[:limit], tenant), "next": following}
    return Response(ResponseEnvelope(data=data).to_json())


def answer_member(request: Request, user_id: int) -> Response:
    """The person as they are now."""
    user = members.find_members(get_caller(request).tenant_id).get(pk=user_id)
    return Response(ResponseEnvelope(data=member_json(user, _tenant(request))).to_json())


def _invited(user: Any, tenant: Tenant, link: str | None) -> Response:
    delivery = "none" if link is None else "link" if link else "mail"
    member = member_json(user, tenant)
    told = {name: member[name] for name in ("id", "username", "roles")}
    data = {"member": told, "delivery": delivery, "link": link or None}
    return Response(ResponseEnvelope(data=data).to_json(), status=201, headers={"Cache-Control": "no-store"})


class PeopleView(Endpoint):
    """For keys with a scope, where it is only about seeing; for people with their permission."""

    authentication_classes = [PersonAuthentication, ApiKeyAuthentication]


class MemberListView(PeopleView):
    """The people of the tenant, with their roles."""

    required_scope = READ
    required_permission = SEE
    query = MemberPageSerializer

    @extend_schema(operation_id="list_members", responses={200: MEMBERS})
    def get(self, request: Request) -> Response:
        return _page(request, members.find_members(get_caller(request).tenant_id), "members", **self.asked)


class MemberView(PeopleView):
    """One person."""

    required_scope = READ
    required_permission = SEE

    @extend_schema(operation_id="read_member", responses={200: MEMBER}, examples=[SHOWN])
    def get(self, request: Request, user_id: int) -> Response:
        return answer_member(request, user_id)


class MemberRolesView(PeopleView):
    """The roles that a person has from now on. Nobody changes their own, and only owners make owners or end them."""

    required_scope = {"PUT": None}
    required_permission = {"PUT": MANAGE}

    @extend_schema(
        operation_id="set_member_roles", request=ChangedRolesSerializer, responses={200: MEMBER}, examples=[NEW_ROLES]
    )
    def put(self, request: Request, user_id: int) -> Response:
        user = members.find_members(get_caller(request).tenant_id).get(pk=user_id)
        data = read_body(request, ChangedRolesSerializer)
        roles, reason = set(data["roles"]), data["reason"]
        members.set_roles(tenant=_tenant(request), user=user, roles=roles, reason=reason, by=get_caller(request))
        return answer_member(request, user_id)


class MemberPermissionView(PeopleView):
    """Give one person a single permission beside their roles. Only owners do."""

    required_scope = {"POST": None}
    required_permission = {"POST": MANAGE}

    @extend_schema(operation_id="give_member_permission", request=GivenPermissionSerializer, responses={200: MEMBER})
    def post(self, request: Request, user_id: int) -> Response:
        permission = read_body(request, GivenPermissionSerializer)["permission"]
        members.give_permission(user_id=user_id, permission=permission, by=get_caller(request))
        return answer_member(request, user_id)


class MemberPermissionTakeView(PeopleView):
    """Take a single permission back. Only owners do."""

    required_scope = {"POST": None}
    required_permission = {"POST": MANAGE}

    @extend_schema(operation_id="take_member_permission", request=GivenPermissionSerializer, responses={200: MEMBER})
    def post(self, request: Request, user_id: int) -> Response:
        permission = read_body(request, GivenPermissionSerializer)["permission"]
        members.take_permission(user_id=user_id, permission=permission, by=get_caller(request))
        return answer_member(request, user_id)


class MemberRemoveView(PeopleView):
    """Let a person leave the tenant: every role and single permission ends with their next request."""

    required_scope = {"POST": None}
    required_permission = {"POST": MANAGE}

    @extend_schema(operation_id="remove_member", request=StatedReasonSerializer, responses={204: None})
    def post(self, request: Request, user_id: int) -> Response:
        user = members.find_members(get_caller(request).tenant_id).get(pk=user_id)
        reason = read_body(request, StatedReasonSerializer)["reason"]
        members.set_roles(tenant=_tenant(request), user=user, roles=set(), reason=reason, by=get_caller(request))
        return Response(status=204)


class InvitationListView(PeopleView):
    """Who was invited and has not come yet; inviting somebody."""

    required_scope = {"GET": READ, "POST": None}
    required_permission = {"GET": SEE, "POST": MANAGE}
    query = MemberPageSerializer

    @extend_schema(operation_id="list_invitations", responses={200: WAITING})
    def get(self, request: Request) -> Response:
        return _page(
            request, invitations.find_pending_invitees(get_caller(request).tenant_id), "invitations", **self.asked
        )

    @extend_schema(
        operation_id="invite_member",
        request=InvitationSerializer,
        responses={201: INVITED},
        examples=[INVITE, INVITED_BY_MAIL],
    )
    def post(self, request: Request) -> Response:
        data = read_body(request, InvitationSerializer)
        user, link = invitations.invite_person(
            username=data["username"],
            name=data["name"],
            email=data["email"],
            roles=set(data["roles"]),
            by=get_caller(request),
        )
        return _invited(user, _tenant(request), link)


class InvitationAgainView(PeopleView):
    """Another link, for somebody who has not come yet."""

    required_scope = {"POST": None}
    required_permission = {"POST": MANAGE}

    @extend_schema(operation_id="repeat_invitation", request=None, responses={201: INVITED})
    def post(self, request: Request, user_id: int) -> Response:
        link = invitations.invite_again(user_id=user_id, by=get_caller(request))
        return _invited(members.find_members(get_caller(request).tenant_id).get(pk=user_id), _tenant(request), link)


class InvitationWithdrawView(PeopleView):
    """Take an invitation back, from somebody who has not come yet: they leave the tenant, and their link ends."""

    required_scope = {"POST": None}
    required_permission = {"POST": MANAGE}

    @extend_schema(operation_id="withdraw_invitation", request=StatedReasonSerializer, responses={204: None})
    def post(self, request: Request, user_id: int) -> Response:
        reason = read_body(request, StatedReasonSerializer)["reason"]
        invitations.withdraw_invitation(user_id=user_id, reason=reason, by=get_caller(request))
        return Response(status=204)
