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
