"""Addresses of trials."""

from django.urls import path

from invocations.trials import pages

PAGES = [
    path("reviews/<tvn:version_id>/try", pages.trial_new, name="trial_new"),
    path("reviews/<tvn:version_id>/try/<rpl:replay_id>", pages.trial, name="trial"),
]
