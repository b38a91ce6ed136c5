"""Addresses of sandbox hosts."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.sandbox_hosts import pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="sandboxes",
        label=gettext_lazy("Sandboxes"),
        icon="monitor",
        address="sandboxes",
        permission="invocations.view",
        job=Job.OPERATIONS,
        order=30,
    ),
]

PAGES = [
    path("sandboxes", pages.sandbox_list, name="sandboxes"),
]

ACCESS = """
[console]

GET   sandboxes                invocations.view       HOPRAD
"""
