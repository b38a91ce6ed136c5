"""Console addresses of the configuration as a file."""

from django.urls import path

from toolhub.configuration import views

urlpatterns = [
    path("configuration", views.configuration, name="configuration"),
    path("configuration/export", views.configuration_export, name="configuration_export"),
]
