"""Console addresses of evidence."""

from django.urls import path

from evidence import views
from evidence.search import views as search_views

urlpatterns = [
    path("evidence", search_views.facts, name="facts"),
    path("evidence/<fct:fact_id>", views.fact, name="fact"),
    path("evidence/<fct:fact_id>/proof", views.fact_proof, name="fact_proof"),
    path("evidence/searches", search_views.searches, name="searches"),
    path("evidence/searches/<qry:search_id>", search_views.search_change, name="search_change"),
    path("evidence/searches/<qry:search_id>/delete", search_views.search_delete, name="search_delete"),
]
