"""Addresses of page events."""

from django.urls import path

from toolhub.page_events import pages

PAGES = [
    path("events", pages.follow_topics, name="page_events"),
    path("events/counts", pages.count_for_navigation, name="page_event_counts"),
]

ACCESS = """
[console]

GET   page_events              invocations.view       HOPRAD
GET   page_event_counts        invocations.view       HOPRAD
"""
