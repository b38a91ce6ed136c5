"""Addresses of callbacks."""

from django.urls import path

from invocations.callbacks import api, pages

PAGES = [
    path("agents/<agt:agent_id>/callbacks", pages.callback_list, name="callbacks"),
    path("agents/<agt:agent_id>/callbacks/new", pages.callback_new, name="callback_new"),
    path("callbacks/<cbe:endpoint_id>/rotate", pages.callback_rotate, name="callback_rotate"),
    path("callbacks/<cbe:endpoint_id>/disable", pages.callback_disable, name="callback_disable"),
    path("callbacks/deliveries", pages.callback_deliveries, name="callback_deliveries"),
    path("callbacks/deliveries/<cbd:delivery_id>", pages.callback_delivery, name="callback_delivery"),
    path("callbacks/deliveries/<cbd:delivery_id>/again", pages.callback_again, name="callback_again"),
]

API = [
    path("agents/<agt:agent_id>/callbacks", api.EndpointListView.as_view(), name="api_callbacks"),
    path("callbacks/<cbe:endpoint_id>/rotate", api.EndpointRotateView.as_view(), name="api_callback_rotate"),
    path("callbacks/<cbe:endpoint_id>/disable", api.EndpointDisableView.as_view(), name="api_callback_disable"),
    path("callbacks/deliveries", api.CallbackDeliveryListView.as_view(), name="api_callback_deliveries"),
    path(
        "callbacks/deliveries/<cbd:delivery_id>",
        api.CallbackDeliveryView.as_view(),
        name="api_callback_delivery",
    ),
    path(
        "callbacks/deliveries/<cbd:delivery_id>/again",
        api.CallbackDeliveryAgainView.as_view(),
        name="api_callback_again",
    ),
]

ACCESS = """
[console]

GET   callbacks                agents.view            HOPRA-
GET   callback_new             agents.manage          HOP---
POST  callback_new             agents.manage          HOP---
POST  callback_rotate          agents.manage          HOP---
POST  callback_disable         agents.manage          HOP---
GET   callback_deliveries      agents.view            HOPRA-
GET   callback_delivery        agents.view            HOPRA-
POST  callback_again           agents.manage          HOP---

[api]

GET    api_callbacks            agents:manage
POST   api_callbacks            agents:manage
POST   api_callback_rotate      agents:manage
POST   api_callback_disable     agents:manage
GET    api_callback_deliveries  agents:manage
GET    api_callback_delivery    agents:manage
POST   api_callback_again       agents:manage
"""
