"""Addresses of saved views."""

from django.urls import path

from invocations.saved_views import pages

PAGES = [
    path("views", pages.saved_views, name="saved_views"),
    path("views/<viw:view_id>/delete", pages.saved_view_delete, name="saved_view_delete"),
    path("views/<str:slug>", pages.saved_view, name="saved_view"),
]

ACCESS = """
[console]

GET   saved_views              invocations.view       HOPRAD
POST  saved_views              invocations.view       HOPRAD
GET   saved_view               invocations.view       HOPRAD
POST  saved_view_delete        invocations.view       HOPRAD
"""
