"""Pages of notifications: where messages go, and what became of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.models import Delivery, Notification
from access.notifications import channels
from access.notifications.forms import ChannelForm
from evidence.deliveries.pages import render_secret
from evidence.search.related_facts import facts_about
from kernel.components.forms import ReasonForm, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page

if TYPE_CHECKING:
    from uuid import UUID

    from django import forms
    from django.http import HttpResponse


@require_GET
@needs("notifications.manage")
def notifications(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Notification)."""
    rows = Notification.objects.filter(tenant_id=request.principal.tenant_id)
    context = {"section": "notifications", "page": fetch_page(rows, prefix="ntf", after=request.GET.get("after", ""))}
    return render_page(request, "notifications/notification_list.html", context)


@require_http_methods(["GET", "POST"])
@needs("notifications.manage")
def notification_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ChannelForm); after POST of a webhook the page with its secret."""
    form = ChannelForm(request.POST if request.method == "POST" else None)
    if made := submit_form(form, lambda: channels.set_notification(**form.cleaned_data, by=request.principal)):
        channel, secret = made
        if secret:
            return _secret_page(request, channel, secret)
        messages.success(request, gettext("The channel was created."))
        return redirect("notification", channel.pk)
    status = 422 if request.method == "POST" else 200
    context = {"section": "notifications", "form": form}
    return render_page(request, "notifications/notification_form.html", context, status=status)


def _secret_page(request: ConsoleRequest, channel: Notification, secret: str) -> HttpResponse:
    trail = [
        (gettext("Notifications"), reverse("notifications")),
        (channel.target, reverse("notification", args=[channel.pk])),
    ]
    return render_secret(
        request, secret, section="notifications", of=gettext("Channel"), address=channel.target, trail=trail
    )


def _channel_page(
    request: ConsoleRequest, found: Notification, *, form: forms.Form | None = None, wrong: str = ""
) -> HttpResponse:
    deliveries = Delivery.objects.filter(notification=found)
    context = {
        "section": "notifications",
        "channel": found,
        "page": fetch_page(deliveries, prefix="dlv", after=request.GET.get("after", "")),
        "form": form or ReasonForm(),
        "wrong": wrong,
        "facts": facts_about(request.principal, found.wire_id),
    }
    return render_page(request, "notifications/notification_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("notifications.manage")
def notification(request: ConsoleRequest, notification_id: UUID) -> HttpResponse:
    """Context: channel, page (Page of Delivery), form, wrong, facts."""
    found = Notification.objects.get(pk=notification_id, tenant_id=request.principal.tenant_id)
    return _channel_page(request, found)


@require_POST
@needs("notifications.manage")
def notification_end(request: ConsoleRequest, notification_id: UUID) -> HttpResponse:
    """POST reason."""
    found = Notification.objects.get(pk=notification_id, tenant_id=request.principal.tenant_id)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _channel_page(request, found, form=form, wrong="end")
    channels.end_notification(notification_id=notification_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The channel has ended. It gets no more messages."))
    return redirect("notification", notification_id)


@require_POST
@needs("notifications.manage")
def delivery_again(request: ConsoleRequest, delivery_id: UUID) -> HttpResponse:
    """POST again."""
    tenant_id = request.principal.tenant_id
    row = Delivery.objects.select_related("notification").get(pk=delivery_id, notification__tenant_id=tenant_id)
    if "again" not in request.POST:
        return _channel_page(request, row.notification, wrong="again")
    channels.redeliver_message(delivery_id=delivery_id, by=request.principal)
    messages.success(request, gettext("The message will be sent again within seconds."))
    return redirect("notification", row.notification_id)
