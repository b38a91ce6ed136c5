"""Which addresses do budgets have in the console?"""

from django.urls import path

from access.budgets import views

urlpatterns = [
    path("budgets", views.budgets, name="budgets"),
    path("budgets/new", views.budget_new, name="budget_new"),
    path("budgets/<bud:budget_id>", views.budget, name="budget"),
    path("budgets/<bud:budget_id>/edit", views.budget_edit, name="budget_edit"),
    path("budgets/<bud:budget_id>/raise", views.budget_raise, name="budget_raise"),
    path("budgets/<bud:budget_id>/end", views.budget_end, name="budget_end"),
]
