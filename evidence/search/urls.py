"""Addresses of search."""

from django.urls import path
from django.utils.translation import gettext_lazy

from evidence.search import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="evidence",
        label=gettext_lazy("Facts"),
        icon="scroll-text",
        address="facts",
        permission="evidence.view",
        job=Job.EVIDENCE,
        order=10,
    ),
]

PAGES = [
    path("evidence", pages.facts, name="facts"),
    path("evidence/searches", pages.searches, name="searches"),
    path("evidence/searches/<qry:search_id>", pages.search_change, name="search_change"),
    path("evidence/searches/<qry:search_id>/delete", pages.search_delete, name="search_delete"),
]

API = [
    path("evidence/facts", api.FactListView.as_view(), name="api_facts"),
]

ACCESS = """
[console]

GET   facts                    evidence.view          HOP-A-
GET   searches                 evidence.view          HOP-A-
POST  searches                 evidence.view          HOP-A-
POST  search_change            evidence.view          HOP-A-
POST  search_delete            evidence.view          HOP-A-

[api]

GET    api_facts                invocations:read

[people]

GET    api_facts                   evidence.view   HOP-A-
"""
