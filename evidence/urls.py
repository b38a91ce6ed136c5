"""Console addresses of evidence."""

from django.urls import path

from evidence import views

urlpatterns = [
    path("evidence", views.facts, name="facts"),
    path("evidence/<fct:fact_id>", views.fact, name="fact"),
]
