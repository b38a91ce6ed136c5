"""Unhealthy things: what does not work as it stands, or was taken out of service, and where one looks after it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext

from access.models import Grant, PolicyState, PolicyVersion
from access.policies.language import denies_everything
from invocations.sandbox_hosts.reports import list_hosts
from registry.model_providers.models import ModelProvider, ModelProviderState
from registry.models import Installation, InstallationState, Tool, ToolState
from registry.tools.expression_matches import load_subjects, match_tools

if TYPE_CHECKING:
    from datetime import datetime

    from kernel.principal import Principal
    from registry.halt_notices import HaltNotices

SHOWN = 5  # of each kind
GRANTS_READ = 200


@dataclass(frozen=True, slots=True)
class UnhealthyThing:
    """``state``: a word of :mod:`kernel.components.labels`."""

    name: str
    state: str
    about: str
    url: str


def list_unhealthy_things(by: Principal, stops: HaltNotices, now: datetime) -> list[UnhealthyThing]:
    found = [
        UnhealthyThing(f"{each.sentence} {each.name}".strip(), "stopped", each.halt.reason, each.url)
        for each in stops.rows[:SHOWN]
    ]
    if by.may("tools.view"):
        found += _list_paused(by) + _list_withdrawn(by)
    if by.may("policies.view"):
        found += _list_total_denials(by)
    if by.may("grants.view"):
        found += _list_empty_grants(by, now)
    if by.may("models.manage"):
        rows = ModelProvider.objects.filter(tenant_id=by.tenant_id, state=ModelProviderState.PAUSED).order_by("name")
        found += [
            UnhealthyThing(row.name, "paused", row.reason, reverse("model_provider", args=[row.name]))
            for row in rows[:SHOWN]
        ]
    if by.may("invocations.view") and not list_hosts(now):
        nobody = gettext("No worker reports: calls wait until one does.")
        found.append(UnhealthyThing(gettext("Sandboxes"), "bad", nobody, reverse("sandboxes")))
    return found


def _list_paused(by: Principal) -> list[UnhealthyThing]:
    tools = Tool.objects.visible_to(by).filter(state=ToolState.PAUSED).order_by("name")[:SHOWN]
    installed = Installation.objects.visible_to(by).filter(state=InstallationState.PAUSED).order_by("name")[:SHOWN]
    found = [UnhealthyThing(row.name, "paused", row.state_reason, reverse("tool", args=[row.name])) for row in tools]
    named = {each.name for each in found}
    return found + [
        UnhealthyThing(row.name, "paused", row.reason, reverse("installation", args=[row.name]))
        for row in installed
        if row.name not in named
    ]


def _list_withdrawn(by: Principal) -> list[UnhealthyThing]:
    """Installed, and their publisher has taken the version back."""
    rows = Installation.objects.visible_to(by).filter(state=InstallationState.ENABLED, version__yanked_at__isnull=False)
    return [
        UnhealthyThing(row.name, "yanked", row.version.yank_reason, reverse("installation", args=[row.name]))
        for row in rows.select_related("version").order_by("name")[:SHOWN]
        if row.version
    ]


def _list_total_denials(by: Principal) -> list[UnhealthyThing]:
    """Policies in force, the tenant's or the hub's, by which no call gets through."""
    rows = PolicyVersion.objects.filter(Q(tenant_id=by.tenant_id) | Q(tenant=None), state=PolicyState.IN_FORCE)
    about = gettext("It denies every call.")
    return [
        UnhealthyThing(
            gettext("Policy %(label)s") % {"label": row.label}, "denies_all", about, reverse("policy", args=[row.pk])
        )
        for row in rows.order_by("pk")
        if denies_everything(row.document)
    ]


def _list_empty_grants(by: Principal, now: datetime) -> list[UnhealthyThing]:
    """Grants in force that name no tool, such as a misspelt one; of the newest ones."""
    rows = list(Grant.objects.visible_to(by).in_force(now).order_by("-pk").only("tools")[:GRANTS_READ])
    subjects = load_subjects(by) if rows else []
    about = gettext("The grant names no tool that is installed.")
    empty = (row for row in rows if not match_tools(row.tools, subjects).count)
    return [
        UnhealthyThing(row.tools, "names_no_tool", about, reverse("grant", args=[row.pk]))
        for row in islice(empty, SHOWN)
    ]
