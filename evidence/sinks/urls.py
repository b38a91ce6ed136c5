"""Addresses of sinks."""

from django.urls import path
from django.utils.translation import gettext_lazy

from evidence.sinks import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="sinks",
        label=gettext_lazy("Event sinks"),
        icon="link",
        address="sinks",
        permission="sinks.manage",
        job=Job.EVIDENCE,
        order=40,
    ),
]

PAGES = [
    path("evidence/sinks", pages.sinks, name="sinks"),
    path("evidence/sinks/new", pages.sink_new, name="sink_new"),
    path("evidence/sinks/<snk:sink_id>", pages.sink, name="sink"),
    path("evidence/sinks/<snk:sink_id>/pause", pages.sink_pause, name="sink_pause"),
    path("evidence/sinks/<snk:sink_id>/resume", pages.sink_resume, name="sink_resume"),
    path("evidence/sinks/<snk:sink_id>/test", pages.sink_test, name="sink_test"),
    path("evidence/sinks/<snk:sink_id>/rotate", pages.sink_rotate, name="sink_rotate"),
    path("evidence/sinks/<snk:sink_id>/end", pages.sink_end, name="sink_end"),
]

API = [
    path("evidence/sinks", api.SinkListView.as_view(), name="api_sinks"),
    path("evidence/sinks/<snk:sink_id>", api.SinkView.as_view(), name="api_sink"),
    path("evidence/sinks/<snk:sink_id>/pause", api.SinkPauseView.as_view(), name="api_sink_pause"),
    path("evidence/sinks/<snk:sink_id>/resume", api.SinkResumeView.as_view(), name="api_sink_resume"),
    path("evidence/sinks/<snk:sink_id>/test", api.SinkTestView.as_view(), name="api_sink_test"),
    path("evidence/sinks/<snk:sink_id>/rotate", api.SinkRotateView.as_view(), name="api_sink_rotate"),
    path("evidence/sinks/<snk:sink_id>/end", api.SinkEndView.as_view(), name="api_sink_end"),
]

ACCESS = """
[console]

GET   sinks                    sinks.manage           HO----
GET   sink_new                 sinks.manage           HO----
POST  sink_new                 sinks.manage           HO----
GET   sink                     sinks.manage           HO----
POST  sink_pause               sinks.manage           HO----
POST  sink_resume              sinks.manage           HO----
POST  sink_test                sinks.manage           HO----
POST  sink_rotate              sinks.manage           HO----
POST  sink_end                 sinks.manage           HO----

[api]

GET    api_sinks                sinks:manage
POST   api_sinks                sinks:manage
GET    api_sink                 sinks:manage
POST   api_sink_pause           sinks:manage
POST   api_sink_resume          sinks:manage
POST   api_sink_test            sinks:manage
POST   api_sink_rotate          sinks:manage
POST   api_sink_end             sinks:manage
"""
