"""Console addresses of calls."""

from django.urls import path

from invocations import explain_views, views

urlpatterns = [
    path("explain", explain_views.explain, name="explain"),
    path("explain/request", explain_views.explain_request, name="explain_request"),
    path("invocations", views.invocations, name="invocations"),
    path("invocations/<inv:invocation_id>", views.invocation, name="invocation"),
    path("invocations/<inv:invocation_id>/values", views.values, name="invocation_values"),
]
