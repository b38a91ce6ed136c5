"""Console addresses of exports."""

from django.urls import path

from evidence.exports import views

urlpatterns = [
    path("evidence/exports", views.exports, name="exports"),
    path("evidence/exports/new", views.export_new, name="export_new"),
    path("evidence/exports/<exp:job_id>", views.export, name="export"),
    path("evidence/exports/<exp:job_id>/content", views.export_content, name="export_content"),
    path("evidence/exports/<exp:job_id>/cancel", views.export_cancel, name="export_cancel"),
]
