"""Addresses of saved views."""

from django.urls import path

from invocations.saved_views import pages

PAGES = [
    path("views", pages.saved_views, name="saved_views"),
    path("views/<viw:view_id>/delete", pages.saved_view_delete, name="saved_view_delete"),
    path("views/<str:slug>", pages.saved_view, name="saved_view"),
]
