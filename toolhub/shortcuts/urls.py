"""Address of shortcuts."""

from django.urls import path

from toolhub.shortcuts import pages

PAGES = [path("shortcuts", pages.shortcuts, name="shortcuts")]
