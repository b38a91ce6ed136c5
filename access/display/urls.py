"""Addresses of display."""

from django.urls import path

from access.display import pages

PAGES = [
    path("display", pages.display, name="display"),
    path("display/zone", pages.display_zone, name="display_zone"),
]
