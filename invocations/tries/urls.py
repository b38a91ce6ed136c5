"""Addresses of tries."""

from django.urls import path

from invocations.tries import pages

PAGES = [
    path("tools/<str:name>/try", pages.tool_try, name="tool_try"),
    path("tools/<str:name>/try/<inv:invocation_id>", pages.tool_tried, name="tool_tried"),
    path(
        "tools/<str:name>/try/<inv:invocation_id>/artifacts/<art:artifact_id>",
        pages.tool_tried_artifact,
        name="tool_tried_artifact",
    ),
]

ACCESS = """
[console]

GET   tool_try                 playground.use         HOP--D
POST  tool_try                 playground.use         HOP--D
GET   tool_tried               playground.use         HOP--D
GET   tool_tried_artifact      playground.use         HOP--D
"""
