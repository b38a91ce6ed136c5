"""Addresses of the playground."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.playground import pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="playground",
        label=gettext_lazy("Playground"),
        icon="message-square",
        address="playground",
        permission="playground.use",
        job=Job.BUILD,
        order=40,
    ),
]

PAGES = [
    path("playground", pages.playground, name="playground"),
    path("playground/set-up", pages.playground_set_up, name="playground_set_up"),
    path("playground/messages", pages.playground_begin, name="playground_begin"),
    path("playground/<plc:conversation_id>", pages.playground_conversation, name="playground_conversation"),
    path("playground/<plc:conversation_id>/messages", pages.playground_send, name="playground_send"),
    path("playground/<plc:conversation_id>/cancel", pages.playground_cancel, name="playground_cancel"),
    path(
        "playground/<plc:conversation_id>/consents/<cns:consent_id>/decision",
        pages.playground_decide,
        name="playground_decide",
    ),
]

ACCESS = """
[console]

GET   playground                playground.use         HOP--D
POST  playground_set_up         agents.manage          HOP---
POST  playground_begin          playground.use         HOP--D
GET   playground_conversation   playground.use         HOP--D
POST  playground_send           playground.use         HOP--D
POST  playground_cancel         playground.use         HOP--D
POST  playground_decide         consents.decide        HOP---
"""
