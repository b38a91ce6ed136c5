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
