"""Addresses of spending."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.call_costs import pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="spending",
        label=gettext_lazy("Spending"),
        icon="activity",
        address="spending",
        permission="budgets.view",
        job=Job.BUDGETS,
        order=20,
    ),
]

PAGES = [path("spending", pages.spending, name="spending")]

ACCESS = """
[console]

GET   spending   budgets.view   HOPRA-
"""
