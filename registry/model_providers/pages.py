"""Pages of model providers: who answers for models, and how a person connects, changes and stops one in the console."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evidence.search.related_facts import facts_about
from kernel.components.forms import ReasonForm
from kernel.components.reason_actions import ReasonAction
from kernel.database.connections import database_time
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import NotFound, Problem
from registry.model_providers import services
from registry.model_providers.circuits import read_state
from registry.model_providers.connected_models import find_models
from registry.model_providers.forms import ProviderForm
from registry.model_providers.key_trials import try_key
from registry.model_providers.kind_checks import list_kind_warnings
from registry.model_providers.provider_keys import change_with_key, connect_with_key
from registry.model_providers.rows import find_provider
from registry.model_providers.settings import ProviderSettings
from registry.models import ModelCircuitState, ModelProvider, ModelProviderState, Secret

if TYPE_CHECKING:
    from django.http import HttpResponse

    from kernel.principal import Principal

CHANGES = {
    "pause": services.pause_provider,
    "enable": services.enable_provider,
    "remove": services.remove_provider,
}


def describe_health(row: ModelProvider) -> dict[str, Any]:
    """Whether it answers: {level: ok, warn or bad, circuits: of the models that have failed since they last answered}."""
    now = database_time()
    circuits = [{"circuit": each, "state": str(read_state(each, now))} for each in row.circuits.all()]
    open_ones = [each for each in circuits if each["state"] != ModelCircuitState.CLOSED]
    return {"level": "bad" if open_ones else "warn" if circuits else "ok", "circuits": circuits}


@require_GET
@needs("models.manage")
def provider_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of ModelProvider), shown (list of {provider, models, health})."""
    rows = ModelProvider.objects.filter(tenant_id=request.principal.tenant_id).prefetch_related("circuits")
    page = fetch_page(rows, prefix="mpr", after=request.GET.get("after", ""))
    shown = [{"provider": row, "models": len(find_models(row)), "health": describe_health(row)} for row in page.rows]
    context = {"section": "model_providers", "page": page, "shown": shown}
    return render_page(request, "model_providers/provider_list.html", context, partial="rows")


def _list_secrets(by: Principal) -> list[str] | None:
    """Those that may be chosen; None: keys are not this person's business."""
    if not by.may("secrets.manage"):
        return None
    return list(Secret.objects.filter(tenant_id=by.tenant_id).order_by("name").values_list("name", flat=True))


def _try(request: ConsoleRequest, form: ProviderForm) -> None:
    """Ask the provider whether it takes the key that was typed. Raises a problem where it does not."""
    key = form.cleaned_data.get("key", "")
    if not key or "untested" in request.POST:
        return
    warning = try_key(kind=form.cleaned_data["kind"], address=form.cleaned_data["address"], key=key)
    if warning:
        messages.warning(request, warning)
    else:
        messages.success(request, gettext("The provider takes the key."))


def _say_warnings(request: ConsoleRequest, row: ModelProvider) -> None:
    for warning in list_kind_warnings(row):
        messages.warning(request, warning)


@sensitive_post_parameters("key")
@require_http_methods(["GET", "POST"])
@needs("models.manage")
def provider_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ProviderForm), provider (None). POST ``untested``: keep the key without asking the provider."""
    by = request.principal
    form = ProviderForm(request.POST or None, secrets=_list_secrets(by))
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            _try(request, form)
            row = connect_with_key(
                name=data["name"], key=data.get("key", ""), reason=data["reason"], by=by, **form.terms()
            )
        except Problem as problem:
            form.add_findings(problem)
        else:
            _say_warnings(request, row)
            messages.success(request, gettext("Connected. Connect its models next."))
            return redirect("model_provider", row.name)
    return _form_page(request, form, None)


def _form_page(request: ConsoleRequest, form: ProviderForm, row: ModelProvider | None) -> HttpResponse:
    context = {"section": "model_providers", "form": form, "provider": row}
    status = 422 if request.method == "POST" else 200
    return render_page(request, "model_providers/provider_form.html", context, status=status)


@sensitive_post_parameters("key")
@require_http_methods(["GET", "POST"])
@needs("models.manage")
def provider_edit(request: ConsoleRequest, name: str) -> HttpResponse:
    """Context: form (ProviderForm), provider. A key that is typed takes the place of the one that is kept."""
    by = request.principal
    row = find_provider(name, tenant_id=by.tenant_id)
    form = ProviderForm(request.POST or None, row=row, secrets=_list_secrets(by), initial=ProviderForm.initial_of(row))
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        moved = (data["kind"], data["address"]) != (row.kind, row.address)
        try:
            _try(request, form)
            done = change_with_key(name=name, key=data.get("key", ""), reason=data["reason"], by=by, **form.terms())
        except Problem as problem:
            form.add_findings(problem)
        else:
            if moved:
                _say_warnings(request, done)
            messages.success(request, gettext("Saved. It applies from the next call."))
            return redirect("model_provider", name)
    return _form_page(request, form, row)


def _list_actions(row: ModelProvider) -> list[ReasonAction]:
    paused = row.state == ModelProviderState.PAUSED
    said = {"name": row.name}
    move = (
        ReasonAction(
            what="enable",
            url=reverse("model_provider_change", args=[row.name, "enable"]),
            icon="play",
            verb=gettext("Resume…"),
            title=gettext("Resume this provider?"),
            text=gettext("Calls of the models of %(name)s go through again at once.") % said,
            button=gettext("Resume provider"),
            tone="primary",
        )
        if paused
        else ReasonAction(
            what="pause",
            url=reverse("model_provider_change", args=[row.name, "pause"]),
            icon="circle-pause",
            verb=gettext("Pause…"),
            title=gettext("Pause this provider?"),
            text=gettext("The next call of each model of %(name)s is refused. Calls that run go on.") % said,
            button=gettext("Pause provider"),
        )
    )
    remove = ReasonAction(
        what="remove",
        url=reverse("model_provider_change", args=[row.name, "remove"]),
        icon="unplug",
        verb=gettext("Remove…"),
        title=gettext("Remove this provider?"),
        text=gettext("%(name)s is forgotten and its models are removed. What was called stays in evidence.") % said,
        button=gettext("Remove provider"),
    )
    return [move, remove]


def _page(
    request: ConsoleRequest, row: ModelProvider, *, wrong: str = "", form: ReasonForm | None = None
) -> HttpResponse:
    context = {
        "section": "model_providers",
        "provider": row,
        "settings": ProviderSettings.from_json(row.settings),
        "models": find_models(row),
        "health": describe_health(row),
        "secret": Secret.objects.filter(tenant_id=row.tenant_id, name=row.secret).first() if row.secret else None,
        "actions": _list_actions(row),
        "action_form": ReasonForm(),
        "form": form,
        "wrong": wrong,
        "facts": facts_about(request.principal, row.urn, size=30)[::-1],
    }
    return render_page(request, "model_providers/provider_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("models.manage")
def provider_detail(request: ConsoleRequest, name: str) -> HttpResponse:
    """Context: provider, settings (ProviderSettings), models (installations), health, secret (its row or None), actions
    (list of ReasonAction), action_form, wrong and form (what was not accepted), facts.
    """
    return _page(request, find_provider(name, tenant_id=request.principal.tenant_id))


@require_POST
@needs("models.manage")
def provider_change(request: ConsoleRequest, name: str, what: str) -> HttpResponse:
    """POST reason. ``what``: pause, enable or remove."""
    row = find_provider(name, tenant_id=request.principal.tenant_id)
    form = ReasonForm(request.POST)
    if what not in CHANGES:
        raise NotFound()
    if not form.is_valid():
        return _page(request, row, wrong=what, form=form)
    CHANGES[what](name=name, reason=form.cleaned_data["reason"], by=request.principal)
    if what == "remove":
        messages.success(request, gettext("%(name)s was removed, and its models with it.") % {"name": name})
        return redirect("model_providers")
    messages.success(request, gettext("The change applies from the next call."))
    return redirect("model_provider", name)
