"""Addresses of trials."""

from django.urls import path

from invocations.trials import pages

PAGES = [
    path("reviews/<tvn:version_id>/try", pages.trial_new, name="trial_new"),
    path("reviews/<tvn:version_id>/try/<rpl:replay_id>", pages.trial, name="trial"),
    path("reviews/<tvn:version_id>/try/<rpl:replay_id>/cancel", pages.trial_cancel, name="trial_cancel"),
]

ACCESS = """
[console]

GET   trial_new                tools.review           HOPR--
POST  trial_new                tools.review           HOPR--
GET   trial                    tools.review           HOPR--
POST  trial_cancel             tools.review           HOPR--
"""
