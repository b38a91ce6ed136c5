"""Console addresses of callbacks."""

from django.urls import path

from invocations.callbacks import views

urlpatterns = [
    path("agents/<agt:agent_id>/callbacks", views.callbacks, name="callbacks"),
    path("agents/<agt:agent_id>/callbacks/new", views.callback_new, name="callback_new"),
    path("callbacks/<cbe:endpoint_id>/rotate", views.callback_rotate, name="callback_rotate"),
    path("callbacks/<cbe:endpoint_id>/disable", views.callback_disable, name="callback_disable"),
    path("callbacks/deliveries", views.callback_deliveries, name="callback_deliveries"),
    path("callbacks/deliveries/<cbd:delivery_id>", views.callback_delivery, name="callback_delivery"),
    path("callbacks/deliveries/<cbd:delivery_id>/again", views.callback_again, name="callback_again"),
]
