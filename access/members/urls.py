"""Addresses of members."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.members import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="people",
        label=gettext_lazy("People"),
        icon="users",
        address="people",
        permission="members.view",
        job=Job.PEOPLE,
        order=10,
    ),
    NavigationEntry(
        key="tenants",
        label=gettext_lazy("Tenants"),
        icon="building-2",
        address="tenants",
        permission="hub.manage",
        job=Job.PEOPLE,
        order=50,
    ),
]

PAGES = [
    path("people", pages.people, name="people"),
    path("people/new", pages.person_new, name="person_new"),
    path("people/<usr:user_id>", pages.person, name="person"),
    path("people/<usr:user_id>/roles", pages.person_roles, name="person_roles"),
    path("people/<usr:user_id>/permissions", pages.person_permissions, name="person_permissions"),
    path("people/<usr:user_id>/invitation", pages.person_link, name="person_link"),
    path("invitations/<str:uid>/<str:token>", pages.invitation, name="invitation"),
    path("tenants", pages.tenants, name="tenants"),
    path("tenants/owners", pages.hub_owners, name="hub_owners"),
    path("tenants/new", pages.tenant_new, name="tenant_new"),
]

API = [
    path("members", api.MemberListView.as_view(), name="api_members"),
    path("members/<usr:user_id>", api.MemberView.as_view(), name="api_member"),
    path("members/<usr:user_id>/roles", api.MemberRolesView.as_view(), name="api_member_roles"),
    path("members/<usr:user_id>/permissions", api.MemberPermissionView.as_view(), name="api_member_permission"),
    path(
        "members/<usr:user_id>/permissions/take",
        api.MemberPermissionTakeView.as_view(),
        name="api_member_permission_take",
    ),
    path("members/<usr:user_id>/remove", api.MemberRemoveView.as_view(), name="api_member_remove"),
    path("invitations", api.InvitationListView.as_view(), name="api_invitations"),
    path("invitations/<usr:user_id>/again", api.InvitationAgainView.as_view(), name="api_invitation_again"),
    path(
        "invitations/<usr:user_id>/withdraw",
        api.InvitationWithdrawView.as_view(),
        name="api_invitation_withdraw",
    ),
]

ACCESS = """
[console]

GET   people                   members.view           HOPRA-
GET   person_new               members.manage         HO----
POST  person_new               members.manage         HO----
GET   person                   members.view           HOPRA-
POST  person_roles             members.manage         HO----
POST  person_permissions       members.manage         HO----
POST  person_link              members.manage         HO----
GET   tenants                  hub.manage             H-----
POST  hub_owners               hub.manage             H-----
GET   tenant_new               hub.manage             H-----
POST  tenant_new               hub.manage             H-----

[api]

GET    api_members              members:read
GET    api_member               members:read
PUT    api_member_roles         -
POST   api_member_permission    -
POST   api_member_permission_take -
POST   api_member_remove        -
GET    api_invitations          members:read
POST   api_invitations          -
POST   api_invitation_again     -
POST   api_invitation_withdraw  -

[people]

GET    api_members                 members.view    HOPRA-
GET    api_member                  members.view    HOPRA-
PUT    api_member_roles            members.manage  HO----
POST   api_member_permission       members.manage  HO----
POST   api_member_permission_take  members.manage  HO----
POST   api_member_remove           members.manage  HO----
GET    api_invitations             members.view    HOPRA-
POST   api_invitations             members.manage  HO----
POST   api_invitation_again        members.manage  HO----
POST   api_invitation_withdraw     members.manage  HO----
"""
