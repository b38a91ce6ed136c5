"""Addresses of service levels."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.service_levels import pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="service_levels",
        label=gettext_lazy("Service levels"),
        icon="activity",
        address="service_levels",
        permission="invocations.view",
        job=Job.OPERATIONS,
        order=20,
    ),
]

PAGES = [
    path("service-levels", pages.service_levels, name="service_levels"),
]

ACCESS = """
[console]

GET   service_levels           invocations.view       HOPRAD
"""
