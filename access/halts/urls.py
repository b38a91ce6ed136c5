"""Addresses of halts."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.halts import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="halts",
        label=gettext_lazy("Kill switches"),
        icon="hand",
        address="halts",
        permission="halts.throw",
        job=Job.OPERATIONS,
        order=10,
    ),
]

PAGES = [
    path("halts", pages.halt_list, name="halts"),
    path("halts/throw", pages.halt_throw, name="halts_throw"),
    path("halts/<hlt:halt_id>/lift", pages.halt_lift, name="halts_lift"),
]

API = [
    path("halts", api.HaltListView.as_view(), name="api_halts"),
    path("halts/<hlt:halt_id>/lift", api.HaltLiftView.as_view(), name="api_halt_lift"),
]

ACCESS = """
[console]

GET   halts                    halts.throw            HOP---
POST  halts_throw              halts.throw            HOP---
POST  halts_lift               halts.throw            HOP---

[api]

GET    api_halts                halts:throw
POST   api_halts                halts:throw
POST   api_halt_lift            halts:throw
"""
