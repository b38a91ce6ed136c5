"""Page of display: where a person chooses the time zone and the form of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_POST

from access.display.forms import DisplayForm
from access.display.services import set_display
from kernel.http.console import find_way_back, public, render_page

if TYPE_CHECKING:
    from django.http import HttpRequest

# An amount that shows what stands between thousands and before decimals.
SAMPLE_MICROS = 1_234_500_000


def _read_chosen(request: Any) -> dict[str, str]:
    """What holds now: of a person who has chosen nothing, what the hub does."""
    if request.display is not None:
        return {"time_zone": request.display.time_zone, "number_style": request.display.number_style}
    return {"time_zone": timezone.get_default_timezone_name()}


@require_http_methods(["GET", "POST"])
@public
def display(request: HttpRequest) -> HttpResponse:
    """POST time_zone, number_style. Context: form, now, sample (micros of an amount)."""
    if not request.user.is_authenticated:
        return redirect_to_login(request.get_full_path())
    chosen = _read_chosen(request)
    form = DisplayForm(request.POST or None, initial=chosen, chosen=chosen["time_zone"])
    if request.method == "POST" and form.is_valid():
        set_display(**form.cleaned_data, user=request.user)
        messages.success(request, gettext("Times and numbers are shown as you have chosen."))
        return redirect("display")
    context = {"section": "", "form": form, "now": timezone.now(), "sample": SAMPLE_MICROS}
    return render_page(request, "display/display.html", context, status=422 if form.errors else 200)


@require_POST
@public
def display_zone(request: HttpRequest) -> HttpResponse:
    """POST time_zone, next: what a page has proposed, and was accepted or declined there."""
    if not request.user.is_authenticated:
        return redirect_to_login("/display")
    set_display(time_zone=request.POST.get("time_zone", ""), user=request.user)
    return HttpResponseRedirect(find_way_back(request, request.POST.get("next", "/"), default="/"))
