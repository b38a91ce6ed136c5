"""Console addresses of policies."""

from django.urls import path

from access.policies import impact_views, views

urlpatterns = [
    path("policies", views.policies, name="policies"),
    path("policies/new", views.policy_new, name="policy_new"),
    path("policies/<pol:policy_id>", views.policy, name="policy"),
    path("policies/<pol:policy_id>/edit", views.policy_edit, name="policy_edit"),
    path("policies/<pol:policy_id>/rules/new/<slug:kind>", views.policy_rule_new, name="policy_rule_new"),
    path("policies/<pol:policy_id>/rules/remove", views.policy_rule_remove, name="policy_rule_remove"),
    path("policies/<pol:policy_id>/discard", views.policy_discard, name="policy_discard"),
    path("policies/<pol:policy_id>/impact", impact_views.policy_impact, name="policy_impact"),
    path("policies/<pol:policy_id>/preview", impact_views.policy_preview, name="policy_preview"),
    path("policies/<pol:policy_id>/publish", views.policy_publish, name="policy_publish"),
    path("policies/<pol:policy_id>/roll-back", views.policy_roll_back, name="policy_roll_back"),
]
