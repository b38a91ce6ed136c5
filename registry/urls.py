"""Console addresses of tools, reviews, installations, secrets, publisher keys, exceptions and kill switches."""

from django.urls import path

from registry import exception_views, halt_views, installation_views, review_views, secret_views, version_views, views
from registry.publishing import views as publishing

urlpatterns = [
    path("tools", views.tools, name="tools"),
    path("tools/submit", review_views.submit, name="tool_submit"),
    path("tools/<str:name>", views.tool, name="tool"),
    path("tools/<str:name>/versions", views.tool_versions, name="tool_versions"),
    path("tools/<str:name>/manifest", views.tool_manifest, name="tool_manifest"),
    path("tools/<str:name>/activity", views.tool_activity, name="tool_activity"),
    path("tools/<str:name>/enable", views.enable, name="tool_enable"),
    path("tools/<str:name>/pause", views.pause, name="tool_pause"),
    path("tools/<str:name>/deprecate", views.deprecate, name="tool_deprecate"),
    path("tools/<str:name>/share", views.share, name="tool_share"),
    path("versions/<tvn:version_id>", version_views.version, name="version"),
    path("versions/<tvn:version_id>/stage", version_views.version_stage, name="version_stage"),
    path("versions/<tvn:version_id>/yank", version_views.version_yank, name="version_yank"),
    path("versions/<tvn:version_id>/trust", version_views.version_trust, name="version_trust"),
    path(
        "versions/<tvn:version_id>/dependencies/retry",
        version_views.version_dependencies_retry,
        name="version_dependencies_retry",
    ),
    path("reviews", review_views.review_queue, name="reviews"),
    path("reviews/<tvn:version_id>", review_views.review, name="review"),
    path("reviews/<tvn:version_id>/decision", review_views.review_decide, name="review_decide"),
    path("installations", installation_views.installation_list, name="installations"),
    path("installations/shared", installation_views.shared, name="shared_tools"),
    path("installations/shared/<str:publisher>/<str:name>", installation_views.install, name="install"),
    path("installations/<str:name>", installation_views.installation, name="installation"),
    path("installations/<str:name>/settings", installation_views.installation_configure, name="installation_configure"),
    path("installations/<str:name>/<str:what>", installation_views.installation_change, name="installation_change"),
    path("people/<usr:user_id>/exceptions", exception_views.person_exceptions, name="person_exceptions"),
    path("secrets", secret_views.secret_list, name="secrets"),
    path("secrets/<str:name>/remove", secret_views.secret_remove, name="secret_remove"),
    path("publisher-keys", publishing.publisher_keys, name="publisher_keys"),
    path("publisher-keys/publishing", publishing.publishing_change, name="publishing_change"),
    path("publisher-keys/<pbk:publisher_key_id>/revoke", publishing.publisher_key_revoke, name="publisher_key_revoke"),
    path("versions/<tvn:version_id>/capsule", publishing.version_capsule, name="version_capsule"),
    path("halts", halt_views.halt_list, name="halts"),
    path("halts/throw", halt_views.halt_throw, name="halts_throw"),
    path("halts/<hlt:halt_id>/lift", halt_views.halt_lift, name="halts_lift"),
]
