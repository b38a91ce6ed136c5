"""Pages of models: which ones the tenant has, what is known of each, and how a person connects, changes and stops one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from access.models import Halt, Reach
from evidence.search.related_facts import facts_about
from invocations.model_calls.model_prices import find_prices
from invocations.models import Invocation
from kernel.components.forms import ReasonForm
from kernel.components.reason_actions import ReasonAction
from kernel.http.console import ConsoleRequest, needs, render_page
from kernel.http.pagination import fetch_page
from kernel.problems import NotFound, Problem
from registry.installations import services as installations
from registry.model_catalogue.api import find_circuit_states
from registry.model_catalogue.forms import ModelTermsForm
from registry.model_providers import connected_models
from registry.model_providers.manifests import read_terms
from registry.models import (
    Installation,
    InstallationState,
    ModelCircuitState,
    ModelProvider,
    ToolKind,
    ToolState,
)
from registry.problems import UnknownModel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from django.http import HttpResponse

    from registry.models import InstallationQuerySet

LAST_CALLS = 10


def find_models_of(tenant_id: UUID) -> InstallationQuerySet:
    """The installations of a tenant's models."""
    rows = Installation.objects.filter(tenant_id=tenant_id).of_kind(ToolKind.MODEL)
    return rows.exclude(state=InstallationState.REMOVED).select_related("tool", "version")


def describe_models(rows: Iterable[Installation], *, tenant_id: UUID) -> list[dict[str, Any]]:
    """Each with what is looked up once for all of them: {installation, manifest, part, price (or None), circuit, state}."""
    shown = []
    for row in rows:
        assert row.version is not None
        manifest = row.version.view
        assert manifest.model is not None
        shown.append((row, manifest, manifest.model))
    prices = find_prices([part for *_, part in shown], tenant_id=tenant_id)
    circuits = find_circuit_states(tenant_id)
    halted = set(
        Halt.objects.filter(tenant_id=tenant_id, reach=Reach.TOOL, lifted_at=None).values_list("target", flat=True)
    )
    found = []
    for row, manifest, part in shown:
        price = prices.get(f"{part.provider}:{part.name}")
        found.append(
            {
                "installation": row,
                "manifest": manifest,
                "part": part,
                "price": price.to_json() if price is not None else None,
                "circuit": circuits.get((part.provider, part.name), str(ModelCircuitState.CLOSED)),
                "passed": sorted(name for name, each in part.features.items() if each == "passed"),
                "state": find_state(row, halted=row.name in halted),
            }
        )
    return found


def find_state(row: Installation, *, halted: bool) -> str:
    if halted:
        return "halted"
    works = row.state == InstallationState.ENABLED and row.tool.state == ToolState.ENABLED
    return str(ToolState.ENABLED if works else ToolState.PAUSED)


@require_GET
@needs("tools.view")
def model_list(request: ConsoleRequest) -> HttpResponse:
    """Context: page (Page of Installation), shown (as describe_models says), may_manage."""
    by = request.principal
    page = fetch_page(find_models_of(by.tenant_id), prefix="ins", after=request.GET.get("after", ""))
    context = {
        "section": "models",
        "page": page,
        "shown": describe_models(page.rows, tenant_id=by.tenant_id),
        "may_manage": by.may("models.manage"),
    }
    return render_page(request, "model_catalogue/model_list.html", context, partial="rows")


def _find_model(request: ConsoleRequest, model_id: str) -> Installation:
    row: Installation | None = find_models_of(request.principal.tenant_id).filter(name=model_id).first()
    if row is None:
        raise UnknownModel(f"There is no model {model_id[:128]} here.")
    return row


def _list_actions(row: Installation) -> list[ReasonAction]:
    said = {"model": row.name}
    paused = row.state == InstallationState.PAUSED
    move = (
        ReasonAction(
            what="resume",
            url=reverse("model_change", args=[row.name, "resume"]),
            icon="play",
            verb=gettext("Resume…"),
            title=gettext("Resume this model?"),
            text=gettext("Agents with a grant can call %(model)s again at once.") % said,
            button=gettext("Resume model"),
            tone="primary",
        )
        if paused
        else ReasonAction(
            what="pause",
            url=reverse("model_change", args=[row.name, "pause"]),
            icon="circle-pause",
            verb=gettext("Pause…"),
            title=gettext("Pause this model?"),
            text=gettext("The next call of %(model)s is refused. Calls that run go on.") % said,
            button=gettext("Pause model"),
        )
    )
    remove = ReasonAction(
        what="remove",
        url=reverse("model_change", args=[row.name, "remove"]),
        icon="unplug",
        verb=gettext("Remove…"),
        title=gettext("Remove this model?"),
        text=gettext("%(model)s means no model any more. It may be connected again; its calls stay.") % said,
        button=gettext("Remove model"),
    )
    return [move, remove]


def _page(
    request: ConsoleRequest, row: Installation, *, wrong: str = "", form: ReasonForm | None = None
) -> HttpResponse:
    by = request.principal
    [shown] = describe_models([row], tenant_id=by.tenant_id)
    may_manage = by.may("models.manage")
    calls = Invocation.objects.visible_to(by).filter(tool=row.name).select_related("agent", "version")
    context = {
        "section": "models",
        "model": shown,
        "installation": row,
        "calls": calls.order_by("-pk")[:LAST_CALLS] if by.may("invocations.view") else [],
        "may_manage": may_manage,
        "may_halt": by.may("halts.throw"),
        "actions": _list_actions(row) if may_manage else [],
        "action_form": ReasonForm(),
        "form": form,
        "wrong": wrong,
        "facts": facts_about(by, row.tool.urn, size=30)[::-1],
    }
    return render_page(request, "model_catalogue/model_detail.html", context, status=422 if wrong else 200)


@require_GET
@needs("tools.view")
def model_detail(request: ConsoleRequest, model_id: str) -> HttpResponse:
    """Context: model (as describe_models says), installation, calls (the last ones), may_manage, may_halt, actions (list of
    ReasonAction), action_form, wrong and form (what was not accepted), facts.
    """
    return _page(request, _find_model(request, model_id))


@require_http_methods(["GET", "POST"])
@needs("models.manage")
def model_new(request: ConsoleRequest) -> HttpResponse:
    """Context: form (ModelTermsForm, filled in from ?provider=), installation (None), providers (names)."""
    by = request.principal
    names = list(ModelProvider.objects.filter(tenant_id=by.tenant_id).order_by("name").values_list("name", flat=True))
    form = ModelTermsForm(request.POST or None, providers=names, initial={"provider": request.GET.get("provider", "")})
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            tool = connected_models.connect_model(
                provider=data["provider"], alias=data["alias"], reason=data["reason"], by=by, **form.terms()
            )
        except Problem as problem:
            form.add_findings(problem)
        else:
            messages.success(request, gettext("Connected. Give agents a grant for it next."))
            return redirect("model", tool.name)
    return _form_page(request, form, None, providers=names)


def _form_page(
    request: ConsoleRequest, form: ModelTermsForm, row: Installation | None, *, providers: Sequence[str] = ()
) -> HttpResponse:
    context = {"section": "models", "form": form, "installation": row, "providers": providers}
    status = 422 if request.method == "POST" else 200
    return render_page(request, "model_catalogue/model_form.html", context, status=status)


@require_http_methods(["GET", "POST"])
@needs("models.manage")
def model_edit(request: ConsoleRequest, model_id: str) -> HttpResponse:
    """Context: form (ModelTermsForm), installation."""
    row = _find_model(request, model_id)
    assert row.version is not None
    form = ModelTermsForm(
        request.POST or None, providers=None, initial=ModelTermsForm.initial_of(read_terms(row.version.view))
    )
    if request.method == "POST" and form.is_valid():
        _group, provider, alias = row.name.split(".")
        try:
            connected_models.change_model(
                provider=provider,
                alias=alias,
                reason=form.cleaned_data["reason"],
                by=request.principal,
                **form.terms(),
            )
        except Problem as problem:
            form.add_findings(problem)
        else:
            messages.success(request, gettext("Saved as a new version. It applies from the next call."))
            return redirect("model", row.name)
    return _form_page(request, form, row)


@require_POST
@needs("models.manage")
def model_change(request: ConsoleRequest, model_id: str, what: str) -> HttpResponse:
    """POST reason. ``what``: pause, resume or remove."""
    row, form = _find_model(request, model_id), ReasonForm(request.POST)
    if what not in ("pause", "resume", "remove"):
        raise NotFound()
    if not form.is_valid():
        return _page(request, row, wrong=what, form=form)
    reason, by = form.cleaned_data["reason"], request.principal
    match what:
        case "pause":
            installations.pause_installation(name=row.name, reason=reason, by=by)
        case "resume":
            installations.resume_installation(name=row.name, reason=reason, by=by)
        case _:
            _group, provider, alias = row.name.split(".")
            connected_models.remove_model(provider=provider, alias=alias, reason=reason, by=by)
            messages.success(request, gettext("%(model)s was removed.") % {"model": row.name})
            return redirect("models")
    messages.success(request, gettext("The change applies from the next call."))
    return redirect("model", row.name)
