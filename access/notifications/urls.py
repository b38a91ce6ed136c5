"""Addresses of notifications."""

from django.urls import path
from django.utils.translation import gettext_lazy

from access.notifications import api, pages
from kernel.http.navigation import Job, NavigationEntry

NAVIGATION = [
    NavigationEntry(
        key="notifications",
        label=gettext_lazy("Notifications"),
        icon="message-square",
        address="notifications",
        permission="notifications.manage",
        job=Job.PEOPLE,
        order=30,
    ),
]

PAGES = [
    path("notifications", pages.notifications, name="notifications"),
    path("notifications/new", pages.notification_new, name="notification_new"),
    path("notifications/<ntf:notification_id>", pages.notification, name="notification"),
    path("notifications/<ntf:notification_id>/end", pages.notification_end, name="notification_end"),
    path("deliveries/<dlv:delivery_id>/again", pages.delivery_again, name="delivery_again"),
]

API = [
    path("channels", api.ChannelListView.as_view(), name="api_channels"),
    path("channels/<ntf:notification_id>", api.ChannelView.as_view(), name="api_channel"),
    path("channels/<ntf:notification_id>/end", api.ChannelEndView.as_view(), name="api_channel_end"),
    path("channels/<ntf:notification_id>/deliveries", api.DeliveryListView.as_view(), name="api_deliveries"),
    path("deliveries/<dlv:delivery_id>/again", api.DeliveryAgainView.as_view(), name="api_delivery_again"),
]

ACCESS = """
[console]

GET   notifications            notifications.manage   HO----
GET   notification_new         notifications.manage   HO----
POST  notification_new         notifications.manage   HO----
GET   notification             notifications.manage   HO----
POST  notification_end         notifications.manage   HO----
POST  delivery_again           notifications.manage   HO----

[api]

GET    api_channels             notifications:manage
POST   api_channels             notifications:manage
GET    api_channel              notifications:manage
PATCH  api_channel              notifications:manage
POST   api_channel_end          notifications:manage
GET    api_deliveries           notifications:manage
POST   api_delivery_again       notifications:manage
"""
