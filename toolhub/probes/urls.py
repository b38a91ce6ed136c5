"""Addresses of probes."""

from django.urls import path

from toolhub.probes import pages

PAGES = [
    path("healthz", pages.alive, name="healthz"),
    path("readyz", pages.ready, name="readyz"),
]
