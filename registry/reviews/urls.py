"""Addresses of reviews."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.reviews import pages

NAVIGATION = [
    NavigationEntry(
        key="reviews",
        label=gettext_lazy("Review queue"),
        icon="git-compare",
        address="reviews",
        permission="tools.review",
        job=Job.REVIEWS,
        order=10,
    ),
    NavigationEntry(
        key="submit",
        label=gettext_lazy("Submit a version"),
        icon="file-json-2",
        address="tool_submit",
        permission="tools.submit",
        job=Job.BUILD,
        order=30,
    ),
]

PAGES = [
    path("tools/submit", pages.tool_submit, name="tool_submit"),
    path("reviews", pages.review_queue, name="reviews"),
    path("reviews/<tvn:version_id>", pages.review, name="review"),
    path("reviews/<tvn:version_id>/decision", pages.review_decide, name="review_decide"),
]

ACCESS = """
[console]

GET   tool_submit              tools.submit           HOP--D
POST  tool_submit              tools.submit           HOP--D
GET   reviews                  tools.review           HOPR--
GET   review                   tools.review           HOPR--
POST  review_decide            tools.review           HOPR--
"""
