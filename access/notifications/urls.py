"""Addresses of notifications."""

from django.urls import path

from access.notifications import api

API = [
    path("channels", api.ChannelListView.as_view(), name="api_channels"),
    path("channels/<ntf:notification_id>", api.ChannelView.as_view(), name="api_channel"),
    path("channels/<ntf:notification_id>/end", api.ChannelEndView.as_view(), name="api_channel_end"),
    path("channels/<ntf:notification_id>/deliveries", api.DeliveryListView.as_view(), name="api_deliveries"),
    path("deliveries/<dlv:delivery_id>/again", api.DeliveryAgainView.as_view(), name="api_delivery_again"),
]
