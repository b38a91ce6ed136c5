"""Address of the overview."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from toolhub.overview import pages

NAVIGATION = [
    NavigationEntry(
        key="overview",
        label=gettext_lazy("Overview"),
        icon="layout-dashboard",
        address="overview",
        permission="invocations.view",
        job=Job.OVERVIEW,
        order=10,
    ),
]

PAGES = [
    path("", pages.overview, name="overview"),
    path("start", pages.start, name="start"),
]

ACCESS = """
[console]

GET   start                    invocations.view       HOPRAD
GET   overview                 invocations.view       HOPRAD
"""
