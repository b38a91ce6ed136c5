"""Addresses of spending."""

from django.urls import path
from django.utils.translation import gettext_lazy

from invocations.call_costs import pages
from kernel.http.navigation import NavigationEntry, Section

NAVIGATION = [
    NavigationEntry(
        key="spending",
        label=gettext_lazy("Spending"),
        icon="activity",
        address="spending",
        permission="budgets.view",
        section=Section.GOVERN,
        order=35,
    ),
]

PAGES = [path("spending", pages.spending, name="spending")]
