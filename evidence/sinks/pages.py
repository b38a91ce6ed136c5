"""Pages of sinks: event sinks in the console, and how far each has got. A secret is shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evidence.deliveries.forms import OverlapForm
from evidence.deliveries.pages import render_secret
from evidence.models import EventSink, Fact
from evidence.sinks import services
from evidence.sinks.cursor import load_log_size
from evidence.sinks.forms import SinkForm
from kernel.components.forms import ReasonForm, submit_form
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page

if TYPE_CHECKING:
    from uuid import UUID

    from django import forms
    from django.http import HttpResponse


def _sink(request: ConsoleRequest, sink_id: UUID) -> EventSink:
    return EventSink.objects.get(pk=sink_id, tenant_id=request.principal.tenant_id)


@require_GET
@needs("sinks.manage")
def sinks(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of EventSink), log_size (int)."""
    by = request.principal
    rows = EventSink.objects.filter(tenant_id=by.tenant_id)
    page = fetch_page(rows, prefix="snk", after=request.GET.get("after", ""))
    context = {"section": "sinks", "page": page, "log_size": load_log_size(by.tenant_id)}
    return render_page(request, "sinks/sink_list.html", context)


@require_http_methods(["GET", "POST"])
@needs("sinks.manage")
def sink_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (SinkForm), may_write_files; after POST the page with the secret, or of the sink."""
    form = SinkForm(request.POST if request.method == "POST" else None)
    if made := submit_form(form, lambda: services.make_sink(by=request.principal, **form.cleaned_data)):
        sink, secret = made
        return _secret_page(request, sink, secret) if secret else redirect("sink", sink.pk)
    context = {
        "section": "sinks",
        "form": form,
        "may_write_files": bool(settings.TOOLHUB_EVENTS_DIR),
    }
    return render_page(request, "sinks/sink_form.html", context, status=422 if request.method == "POST" else 200)


def _secret_page(request: ConsoleRequest, sink: EventSink, secret: str) -> HttpResponse:
    trail = [(gettext("Event sinks"), reverse("sinks")), (sink.name, reverse("sink", args=[sink.pk]))]
    return render_secret(
        request, secret, section="evidence", of=gettext("Sink"), name=sink.name, address=sink.url, trail=trail
    )


def _page(request: ConsoleRequest, sink: EventSink, *, form: forms.Form | None = None, wrong: str = "") -> HttpResponse:
    """``wrong``: which form was not accepted (pause, rotate, end)."""
    size = load_log_size(sink.tenant_id)
    context = {
        "section": "sinks",
        "sink": sink,
        "log_size": size,
        "lag": max(0, size - sink.cursor),
        "folder": f"{sink.tenant_wire_id}/{sink.wire_id}",
        "form": form,
        "wrong": wrong,
        "reason_form": ReasonForm(),
        "overlap_form": OverlapForm(),
        "facts": Fact.objects.visible_to(request.principal).filter(subject=sink.wire_id).order_by("-id")[:20],
    }
    return render_page(request, "sinks/sink_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("sinks.manage")
def sink(request: ConsoleRequest, sink_id: UUID) -> HttpResponse:
    """Context: sink, log_size, lag (leaves that it has not got), folder, form, wrong, reason_form, overlap_form, facts."""
    return _page(request, _sink(request, sink_id))


@require_POST
@needs("sinks.manage")
def sink_pause(request: ConsoleRequest, sink_id: UUID) -> HttpResponse:
    """POST reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _page(request, _sink(request, sink_id), form=form, wrong="pause")
    services.pause_sink(sink_id=sink_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The sink is paused. Events wait in the log until it is resumed."))
    return redirect("sink", sink_id)


@require_POST
@needs("sinks.manage")
def sink_resume(request: ConsoleRequest, sink_id: UUID) -> HttpResponse:
    services.resume_sink(sink_id=sink_id, by=request.principal)
    messages.success(request, gettext("The sink was resumed. It continues where it stopped."))
    return redirect("sink", sink_id)


@require_POST
@needs("sinks.manage")
def sink_test(request: ConsoleRequest, sink_id: UUID) -> HttpResponse:
    """A test event, behind what waits."""
    services.test_sink(sink_id=sink_id, by=request.principal)
    messages.success(request, gettext("A test event was queued behind the events that are waiting."))
    return redirect("sink", sink_id)


@require_POST
@needs("sinks.manage")
def sink_rotate(request: ConsoleRequest, sink_id: UUID) -> HttpResponse:
    """POST overlap_hours; answers with the page that shows the new secret."""
    form, by = OverlapForm(request.POST), request.principal
    if made := submit_form(form, lambda: services.rotate_secret(sink_id=sink_id, overlap=form.overlap(), by=by)):
        return _secret_page(request, *made)
    return _page(request, _sink(request, sink_id), form=form, wrong="rotate")


@require_POST
@needs("sinks.manage")
def sink_end(request: ConsoleRequest, sink_id: UUID) -> HttpResponse:
    """POST reason."""
    form = ReasonForm(request.POST)
    if not form.is_valid():
        return _page(request, _sink(request, sink_id), form=form, wrong="end")
    services.end_sink(sink_id=sink_id, reason=form.cleaned_data["reason"], by=request.principal)
    messages.success(request, gettext("The sink has ended. No more events are sent to it."))
    return redirect("sink", sink_id)
