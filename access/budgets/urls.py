"""Addresses of budgets."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.budgets import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="budgets",
        label=gettext_lazy("Budgets"),
        icon="timer",
        address="budgets",
        permission="budgets.view",
        job=Job.BUDGETS,
        order=10,
    ),
]

PAGES = [
    path("budgets", pages.budgets, name="budgets"),
    path("budgets/new", pages.budget_new, name="budget_new"),
    path("budgets/use", pages.budget_use, name="budget_use"),
    path("budgets/<bud:budget_id>", pages.budget, name="budget"),
    path("budgets/<bud:budget_id>/edit", pages.budget_edit, name="budget_edit"),
    path("budgets/<bud:budget_id>/raise", pages.budget_raise, name="budget_raise"),
    path("budgets/<bud:budget_id>/end", pages.budget_end, name="budget_end"),
]

API = [
    path("budgets", api.BudgetListView.as_view(), name="api_budgets"),
    path("budgets/<bud:budget_id>", api.BudgetView.as_view(), name="api_budget"),
    path("budgets/<bud:budget_id>/raise", api.BudgetRaiseView.as_view(), name="api_budget_raise"),
    path("budgets/<bud:budget_id>/end", api.BudgetEndView.as_view(), name="api_budget_end"),
]

ACCESS = """
[console]

GET   budgets                  budgets.view           HOPRA-
GET   budget_new               budgets.manage         HOP---
POST  budget_new               budgets.manage         HOP---
GET   budget_use               budgets.manage         HOP---
GET   budget                   budgets.view           HOPRA-
POST  budget_edit              budgets.manage         HOP---
POST  budget_raise             budgets.manage         HOP---
POST  budget_end               budgets.manage         HOP---

[api]

GET    api_budgets              budgets:read
POST   api_budgets              budgets:manage
GET    api_budget               budgets:read
POST   api_budget_raise         budgets:manage
POST   api_budget_end           budgets:manage
"""
