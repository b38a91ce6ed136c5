"""Addresses of object permissions."""

from django.urls import path

from access.object_permissions import api, pages

PAGES = [
    path("people/<usr:user_id>/exceptions", pages.person_exceptions, name="person_exceptions"),
]

API = [
    path(
        "members/<usr:user_id>/exceptions",
        api.MemberExceptionView.as_view(),
        name="api_member_exception",
    ),
    path(
        "members/<usr:user_id>/exceptions/take",
        api.MemberExceptionTakeView.as_view(),
        name="api_member_exception_take",
    ),
]

ACCESS = """
[console]

POST  person_exceptions        members.manage         HO----

[api]

POST   api_member_exception     -
POST   api_member_exception_take -

[people]

POST   api_member_exception        members.manage  HO----
POST   api_member_exception_take   members.manage  HO----
"""
