"""Addresses of capsules."""

from django.urls import path
from django.utils.translation import gettext_lazy

from kernel.http.navigation import Job, NavigationEntry
from registry.capsules import api, pages

NAVIGATION = [
    NavigationEntry(
        key="publisher_keys",
        label=gettext_lazy("Publisher keys"),
        icon="stamp",
        address="publisher_keys",
        permission="publishers.manage",
        job=Job.BUILD,
        order=50,
    ),
]

PAGES = [
    path("publisher-keys", pages.publisher_keys, name="publisher_keys"),
    path("publisher-keys/publishing", pages.publishing_change, name="publishing_change"),
    path("publisher-keys/<pbk:publisher_key_id>/revoke", pages.publisher_key_revoke, name="publisher_key_revoke"),
    path("versions/<tvn:version_id>/capsule", pages.version_capsule, name="version_capsule"),
]

API = [
    path("capsules", api.CapsuleListView.as_view(), name="api_capsules"),
    path("capsules/<cap:capsule_id>", api.CapsuleView.as_view(), name="api_capsule"),
    path(
        "capsules/<cap:capsule_id>/content",
        api.CapsuleContentView.as_view(),
        name="api_capsule_content",
    ),
    path("publisher-keys", api.PublisherKeyListView.as_view(), name="api_publisher_keys"),
    path(
        "publisher-keys/<pbk:publisher_key_id>/revoke",
        api.PublisherKeyRevokeView.as_view(),
        name="api_publisher_key_revoke",
    ),
    path("publishing", api.PublishingView.as_view(), name="api_publishing"),
]

ACCESS = """
[console]

GET   version_capsule          tools.review           HOPR--
GET   publisher_keys           publishers.manage      HO----
POST  publisher_keys           publishers.manage      HO----
POST  publishing_change        publishers.manage      HO----
GET   publisher_key_revoke     publishers.manage      HO----
POST  publisher_key_revoke     publishers.manage      HO----

[api]

GET    api_capsules             tools:register
POST   api_capsules             tools:register
GET    api_capsule              tools:register
GET    api_capsule_content      tools:register
GET    api_publisher_keys       publishers:manage
POST   api_publisher_keys       publishers:manage
POST   api_publisher_key_revoke publishers:manage
GET    api_publishing           publishers:manage
PUT    api_publishing           publishers:manage
"""
