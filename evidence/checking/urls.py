"""Console addresses of the integrity of logs."""

from django.urls import path

from evidence.checking import views

urlpatterns = [
    path("evidence/integrity", views.integrity, name="integrity"),
    path("evidence/integrity/verify", views.verification_new, name="verification_new"),
    path("evidence/integrity/<ver:verification_id>", views.verification, name="verification"),
    path("evidence/checkpoints/<int:size>", views.checkpoint_note, name="checkpoint_note"),
]
