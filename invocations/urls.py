"""Console addresses of calls."""

from django.urls import path

from invocations import views

urlpatterns = [
    path("invocations", views.invocations, name="invocations"),
    path("invocations/<inv:invocation_id>", views.invocation, name="invocation"),
    path("invocations/<inv:invocation_id>/values", views.values, name="invocation_values"),
]
