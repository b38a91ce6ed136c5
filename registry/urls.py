"""Console addresses of tools and reviews."""

from django.urls import path

from registry import views

urlpatterns = [
    path("tools", views.tools, name="tools"),
    path("tools/submit", views.submit, name="tool_submit"),
    path("tools/<str:name>", views.tool, name="tool"),
    path("tools/<str:name>/versions", views.tool_versions, name="tool_versions"),
    path("tools/<str:name>/manifest", views.tool_manifest, name="tool_manifest"),
    path("tools/<str:name>/activity", views.tool_activity, name="tool_activity"),
    path("tools/<str:name>/enable", views.enable, name="tool_enable"),
    path("tools/<str:name>/pause", views.pause, name="tool_pause"),
    path("tools/<str:name>/deprecate", views.deprecate, name="tool_deprecate"),
    path("reviews", views.reviews, name="reviews"),
    path("reviews/<tvn:version_id>", views.review, name="review"),
    path("reviews/<tvn:version_id>/decision", views.review_decide, name="review_decide"),
]
