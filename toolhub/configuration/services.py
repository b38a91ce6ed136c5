"""Configuration: how that of a tenant is exported, and a file of it planned and applied.

A plan is tried before it is shown: what would be refused is said then. Applying it checks that it is still the plan that was
looked at, then does everything or nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db import transaction

from access.models import Tenant
from evidence import services as evidence
from evidence.kinds import Kind
from evidence.leaves.hub import AppliedDocument, ExportedConfiguration
from kernel.canonical import compute_digest
from kernel.ids import encode
from kernel.principal import ActorKind
from kernel.problems import Forbidden
from registry.model_providers.kind_checks import list_kind_warnings
from registry.models import ModelProvider
from toolhub.configuration.document import PRUNABLE, ConfigurationDocument, build_document
from toolhub.configuration.execution import carry_out_plan
from toolhub.configuration.plan import Action, ConfigurationPlan, compare_entries
from toolhub.configuration.problems import PlanStale
from toolhub.configuration.resolution import resolve_document
from toolhub.configuration.sentences import describe_unchanged
from toolhub.configuration.state import read_state

if TYPE_CHECKING:
    from kernel.principal import Principal
    from toolhub.configuration.plan import ConfigurationChange

MAX_REASON = 500
# Whoever applies a file may change what they may change one by one: (permission of people, scope of keys). None: people only.
NEEDED: dict[str, tuple[str, str | None]] = {
    "agents": ("agents.manage", "agents:manage"),
    "installations": ("tools.install", "tools:operate"),
    "model_providers": ("models.manage", "models:manage"),
    "models": ("models.manage", "models:manage"),
    "model_prefix": ("models.manage", "models:manage"),
    "model_prices": ("models.manage", "models:manage"),
    "grants": ("grants.give", "grants:manage"),
    "budgets": ("budgets.manage", "budgets:manage"),
    "issuers": ("issuers.manage", "issuers:manage"),
    "identities": ("issuers.manage", "issuers:manage"),
    "notifications": ("notifications.manage", "notifications:manage"),
    "policy": ("policies.draft", "policies:draft"),
    "members": ("members.manage", None),
}


@dataclass(frozen=True, slots=True)
class AppliedConfiguration:
    """What was done. ``shown_once``: signing secrets of new webhooks by their address, which nobody sees again."""

    plan: ConfigurationPlan
    shown_once: dict[str, str] = field(default_factory=dict)


# Who may.


def check_can_apply(by: Principal) -> None:
    if by.kind is not ActorKind.SYSTEM:
        by.check("configuration:apply" if by.kind is ActorKind.AGENT else "configuration.apply")


def sees_people(by: Principal) -> bool:
    """What a key could not change, a file for it does not hold."""
    return by.kind is not ActorKind.AGENT


def check_may_say(document: ConfigurationDocument, *, by: Principal) -> None:
    """Some sections are for people only."""
    for section in document.entries:
        if by.kind is ActorKind.AGENT and NEEDED[section][1] is None:
            raise Forbidden(
                f"Only a person changes {section}, never a key.",
                remedy=f"Take the section {section} out of the file, or let a person apply it.",
                details={
                    "section": section,
                    "findings": [{"pointer": f"/{section}", "message": "Only people change it."}],
                },
            )


def check_may_change(plan: ConfigurationPlan, *, by: Principal) -> None:
    """A file gives nobody more than they hold."""
    if by.kind is ActorKind.SYSTEM:
        return
    for section in plan.by_section():
        permission, scope = NEEDED[section]
        by.check(permission if by.kind is ActorKind.USER or scope is None else scope)


# Planning.


def _plan(document: ConfigurationDocument, *, by: Principal) -> ConfigurationPlan:
    check_may_say(document, by=by)
    issuers = [entry.identity[0] for entry in document.entries.get("issuers", [])]
    state = read_state(by.tenant_id, issuers=issuers, people=sees_people(by))
    entries, warnings = resolve_document(document, state, tenant_id=by.tenant_id)
    every = [
        change
        for change in compare_entries(state.entries, entries, PRUNABLE)
        if not (
            change.section == "agents" and change.wanted is None and change.current and change.current.get("disabled")
        )
    ]
    changes: list[ConfigurationChange] = []
    left: list[ConfigurationChange] = []
    for change in every:
        stays = change.action is Action.END and change.section not in document.prune
        (left if stays else changes).append(change)
    plan = ConfigurationPlan(encode("ten", by.tenant_id), changes, warnings + describe_unchanged(left))
    check_may_change(plan, by=by)
    return plan


def plan_configuration(document: ConfigurationDocument, *, by: Principal) -> ConfigurationPlan:
    """What applying the document would change. It is tried out and undone, so that a plan that is shown can be applied."""
    check_can_apply(by)
    with transaction.atomic():
        plan = _plan(document, by=by)
        carry_out_plan(plan, by=by, reason=_choose_reason("", document))
        transaction.set_rollback(True)
    return plan


def _choose_reason(reason: str, document: ConfigurationDocument) -> str:
    return (reason.strip() or f"As a configuration file says ({document.digest[:19]}).")[:MAX_REASON]


# Applying.


@transaction.atomic
def apply_configuration(
    *, document: ConfigurationDocument, plan_digest: str, by: Principal, reason: str = ""
) -> AppliedConfiguration:
    """Carry out the plan that was looked at, all of it or nothing; refused when another one would come of the file now."""
    check_can_apply(by)
    Tenant.objects.select_for_update(no_key=True).get(pk=by.tenant_id)  # one file after the other
    plan = _plan(document, by=by)
    if plan.digest != plan_digest:
        raise PlanStale(
            "Since this plan was made, something that it is about was changed, or the file was.",
            details={"digest": plan.digest},
            remedy="Plan the file again and look at what it would change now.",
        )
    if plan.is_empty:
        return AppliedConfiguration(plan)
    said = _choose_reason(reason, document)
    run = carry_out_plan(plan, by=by, reason=said)
    evidence.record(
        kind=Kind.CONFIGURATION_APPLIED,
        subject=plan.tenant,
        actor=by,
        data=AppliedDocument(
            document=document.digest,
            plan=plan.digest,
            counts=plan.by_section(),
            prune=sorted(document.prune),
            reason=said,
        ),
    )
    return AppliedConfiguration(plan, run.shown_once)


def list_applied_warnings(done: AppliedConfiguration, *, by: Principal) -> tuple[str, ...]:
    """What is to be said of what was applied. Others are asked, so it is not within its transaction."""
    reached = [
        change.wanted.identity[0]
        for change in done.plan.doing
        if change.section == "model_providers"
        and change.wanted is not None
        and {"kind", "address"} & set(change.after or {})
    ]
    rows = ModelProvider.objects.filter(tenant_id=by.tenant_id, name__in=reached).order_by("name")
    return tuple(f"{row.name}: {said}" for row in rows for said in list_kind_warnings(row))


# Exporting.


@transaction.atomic
def export_configuration(*, by: Principal) -> dict[str, Any]:
    """The configuration as it is, as a document that, applied again, changes nothing. Keys get it without people."""
    check_can_apply(by)
    state = read_state(by.tenant_id, people=sees_people(by))
    document = build_document(state.slug, state.entries)
    evidence.record(
        kind=Kind.CONFIGURATION_EXPORTED,
        subject=encode("ten", by.tenant_id),
        actor=by,
        data=ExportedConfiguration(
            document=compute_digest(document),
            counts={name: len(entries) for name, entries in state.entries.items() if entries},
        ),
    )
    return document
