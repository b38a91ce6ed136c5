"""Addresses of sandbox hosts."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.sandbox_hosts import pages
from kernel.http.navigation import NavigationEntry, Section

NAVIGATION = [
    NavigationEntry(
        key="sandboxes",
        label=gettext_lazy("Sandboxes"),
        icon="monitor",
        address="sandboxes",
        permission="invocations.view",
        section=Section.OPERATE,
        order=30,
    ),
]

PAGES = [
    path("sandboxes", pages.sandbox_list, name="sandboxes"),
]
