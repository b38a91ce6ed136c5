"""Execution: how a plan is carried out.

By the services that people and programs use for one thing at a time, each with its rules and its fact. What stops something
comes last, so that nothing new is given to what has stopped already, and a tenant keeps an owner throughout.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from django.contrib.auth import get_user_model
from django.core.exceptions import ObjectDoesNotExist

from access.agents import services as agents
from access.budgets import services as budgets
from access.grants import services as grants
from access.issuers import services as issuers
from access.members import services as members
from access.models import Agent, Budget, BudgetScope, Tenant, TrustedIssuer
from access.notifications import channels
from access.policies import services as policies
from access.roles import Role
from kernel.problems import NotFound, Problem
from registry.installations import services as installations
from registry.model_prefixes.services import set_prefix
from registry.model_prices.services import set_model_prices
from registry.model_providers import connected_models as models
from registry.model_providers import services as providers
from registry.object_permissions import thing_named
from toolhub.configuration.document import EVERY_AGENT, POLICY, PRICES
from toolhub.configuration.normal_form import parse_moment
from toolhub.configuration.plan import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from kernel.principal import Principal
    from registry.installations.services import Setup
    from toolhub.configuration.document import ConfigurationEntry
    from toolhub.configuration.plan import ConfigurationChange, ConfigurationPlan

SOURCE = "file"
SETUP = ("pin", "config", "hosts", "paths", "secrets")


@dataclass(slots=True)
class ConfigurationRun:
    """One plan being carried out. ``shown_once``: signing secrets of new webhooks, by their address."""

    by: Principal
    reason: str
    shown_once: dict[str, str] = field(default_factory=dict)

    def agent_id(self, name: str) -> UUID:
        return Agent.objects.values_list("pk", flat=True).get(tenant_id=self.by.tenant_id, name=name)

    def issuer_id(self, issuer: str) -> UUID:
        rows = TrustedIssuer.objects.values_list("pk", flat=True)
        return rows.get(tenant_id=self.by.tenant_id, issuer=issuer, disabled_at=None)


@contextmanager
def locate_problems(pointer: str, *, whole: bool = False) -> Iterator[None]:
    """What a service refuses here is about this place of the file; ``whole``: about nothing smaller."""
    try:
        yield
    except Problem as problem:
        found = problem.details.get("findings") or [{"pointer": "", "message": problem.detail}]
        findings = [{**each, "pointer": pointer + ("" if whole else each["pointer"])} for each in found]
        problem.details = {**problem.details, "findings": findings}
        problem.detail = f"{problem.detail.partition(' (at /')[0]} (at {findings[0]['pointer']})"
        raise
    except ObjectDoesNotExist as error:
        message = f"What this names is not here any more. (at {pointer})"
        raise NotFound(message, details={"findings": [{"pointer": pointer, "message": message}]}) from error


def carry_out_plan(plan: ConfigurationPlan, *, by: Principal, reason: str) -> ConfigurationRun:
    """Everything that the plan says, in the transaction of the caller."""
    run = ConfigurationRun(by, reason)
    for section, action in STEPS:
        for change in plan.doing:
            if change.section == section:
                with locate_problems(change.pointer):
                    action(run, change)
    return run


def _wanted(change: ConfigurationChange) -> ConfigurationEntry:
    assert change.wanted is not None
    return change.wanted


def _current(change: ConfigurationChange) -> ConfigurationEntry:
    assert change.current is not None
    return change.current


# Agents.


def _start_agents(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.CREATE:
        agents.create_agent(name=_wanted(change).identity[0], by=run.by)
    elif change.action is Action.CHANGE and not _wanted(change).get("disabled"):
        agents.enable_agent(agent_id=_current(change).ref, reason=run.reason, by=run.by)


def _stop_agents(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        if not _current(change).get("disabled"):
            agents.disable_agent(agent_id=_current(change).ref, reason=run.reason, by=run.by)
    elif _wanted(change).get("disabled"):
        agents.disable_agent(agent_id=run.agent_id(_wanted(change).identity[0]), reason=run.reason, by=run.by)


# Installations.


def _installation(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        installations.remove_installation(name=_current(change).identity[0], reason=run.reason, by=run.by)
        return
    entry, name = _wanted(change), _wanted(change).identity[0]
    if change.action is Action.CHANGE and "publisher" in (change.after or {}):
        installations.remove_installation(name=name, reason=run.reason, by=run.by)
        _install(run, entry)
    elif change.action is Action.CREATE:
        _install(run, entry)
    else:
        after = change.after or {}
        values = _setup({each: after[each] for each in SETUP if each in after})
        if values:
            installations.configure_installation(name=name, values=values, reason=run.reason, by=run.by)
        if "state" in after:
            move = installations.pause_installation if after["state"] == "paused" else installations.resume_installation
            move(name=name, reason=run.reason, by=run.by)


def _setup(values: dict[str, Any]) -> Setup:
    return cast("Setup", values)


def _install(run: ConfigurationRun, entry: ConfigurationEntry) -> None:
    name = entry.identity[0]
    values = _setup({each: entry.fields[each] for each in SETUP if each in entry.fields})
    publisher = entry.fields.get("publisher", "")
    installations.install_tool(name=name, publisher=publisher, values=values, reason=run.reason, by=run.by)
    if entry.get("state") == "paused":
        installations.pause_installation(name=name, reason=run.reason, by=run.by)


# Models.


def _start_providers(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        return
    name, after = _wanted(change).identity[0], dict(change.after or {})
    state = after.pop("state", "")
    if change.action is Action.CREATE:
        providers.connect_provider(name=name, reason=run.reason, by=run.by, **after)
    elif after:
        providers.change_provider(name=name, reason=run.reason, by=run.by, **after)
    if state == "paused":
        providers.pause_provider(name=name, reason=run.reason, by=run.by)
    elif state and change.action is Action.CHANGE:
        providers.enable_provider(name=name, reason=run.reason, by=run.by)


def _stop_providers(run: ConfigurationRun, change: ConfigurationChange) -> None:
    """After its models, of which a file may say the same."""
    if change.action is Action.END:
        providers.remove_provider(name=_current(change).identity[0], reason=run.reason, by=run.by)


def _model(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        provider, alias = _current(change).identity
        models.remove_model(provider=provider, alias=alias, reason=run.reason, by=run.by)
        return
    (provider, alias), after = _wanted(change).identity, dict(change.after or {})
    state, name = after.pop("state", ""), f"model.{provider}.{alias}"
    after.pop("fallbacks", None)
    if change.action is Action.CREATE:
        models.connect_model(provider=provider, alias=alias, reason=run.reason, by=run.by, **after)
    elif after:
        models.change_model(provider=provider, alias=alias, reason=run.reason, by=run.by, **after)
    if state == "paused":
        installations.pause_installation(name=name, reason=run.reason, by=run.by)
    elif state and change.action is Action.CHANGE:
        installations.resume_installation(name=name, reason=run.reason, by=run.by)


def _model_prefix(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.wanted is not None:
        set_prefix(text=change.wanted.fields["text"], reason=run.reason, by=run.by)


def _fallbacks(run: ConfigurationRun, change: ConfigurationChange) -> None:
    """Once all models are there, for they name each other."""
    fallbacks = (change.after or {}).get("fallbacks")
    if change.action is Action.END or fallbacks is None or (change.action is Action.CREATE and not fallbacks):
        return
    provider, alias = _wanted(change).identity
    models.change_model(provider=provider, alias=alias, reason=run.reason, by=run.by, fallbacks=fallbacks)


def _prices(run: ConfigurationRun, change: ConfigurationChange) -> None:
    set_model_prices(document=_wanted(change).fields, reason=run.reason, by=run.by)


# Grants, with their limits.


def _end_grants(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END or (change.action is Action.CHANGE and change.replaces):
        grants.revoke_grant(grant_id=_current(change).ref, reason=run.reason, by=run.by)


def _give_grants(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.CREATE or (change.action is Action.CHANGE and change.replaces):
        _give(run, _wanted(change))
    elif change.action is Action.CHANGE:
        _move(run, change)


def _give(run: ConfigurationRun, entry: ConfigurationEntry) -> None:
    agent, tools = entry.identity
    until = entry.fields["expires_at"]
    given = grants.give_grant(
        agent_id=None if agent == EVERY_AGENT else run.agent_id(agent),
        tools=tools,
        capabilities=entry.fields["capabilities"],
        scopes=entry.fields["scopes"],
        conditions=entry.fields["conditions"],
        expires_at=parse_moment(until) if until else None,
        may_delegate=entry.fields["may_delegate"],
        reason=entry.fields["reason"],
        source=SOURCE,
        by=run.by,
    )
    _limit(run, given.pk, entry.fields["limits"])


def _move(run: ConfigurationRun, change: ConfigurationChange) -> None:
    """Another end, other limits: the grant stays the same one, and what was used of it stays used."""
    grant_id, after = _current(change).ref, change.after or {}
    if "expires_at" in after:
        until = after["expires_at"]
        expires_at = parse_moment(until) if until else None
        grants.extend_grant(grant_id=grant_id, expires_at=expires_at, reason=run.reason, by=run.by)
    if "limits" in after:
        kept = {(each["dimension"], each["window_s"]) for each in after["limits"]}
        rows = Budget.objects.filter(
            tenant_id=run.by.tenant_id, scope=BudgetScope.GRANT, grant_id=grant_id, ended_at=None
        )
        for row in rows.order_by("pk"):
            if (row.dimension, row.window_s) not in kept:
                budgets.end_budget(budget_id=row.pk, reason=run.reason, by=run.by)
        before = (change.before or {})["limits"]
        _limit(run, grant_id, [each for each in after["limits"] if each not in before])


def _limit(run: ConfigurationRun, grant_id: UUID, limits: list[dict[str, Any]]) -> None:
    for each in limits:
        with locate_problems("/limits", whole=True):
            budgets.set_budget(scope=BudgetScope.GRANT, grant_id=grant_id, reason=run.reason, by=run.by, **each)


# Budgets.


def _budget(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        budgets.end_budget(budget_id=_current(change).ref, reason=run.reason, by=run.by)
        return
    entry = _wanted(change)
    named = entry.named
    reason = entry.fields.get("reason", change.current.get("reason") if change.current else "")
    budgets.set_budget(
        scope=named["scope"],
        dimension=named["dimension"],
        window_s=named["window_s"],
        agent_id=run.agent_id(named["agent"]) if named["agent"] else None,
        tool=named["tool"],
        amount=entry.fields["amount"],
        reason=reason,
        by=run.by,
    )


# Identity providers and the subjects of their tokens.


def _start_issuers(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        return
    entry = _wanted(change)
    said = {each: change.current.get(each) for each in ("audience", "jwks_url", "jwks")} if change.current else {}
    said = {"jwks_url": "", "jwks": None} | said | entry.fields
    if change.action is Action.CREATE:
        issuers.trust_issuer(issuer=entry.identity[0], by=run.by, **said)
    else:
        issuers.change_issuer(issuer_id=_current(change).ref, by=run.by, **said)


def _stop_issuers(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        issuers.distrust_issuer(issuer_id=_current(change).ref, reason=run.reason, by=run.by)


def _identity(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.current is not None:
        issuers.unmap_identity(identity_id=change.current.ref, by=run.by)
    if change.wanted is not None:
        issuer, subject = change.wanted.identity
        agent, scopes = change.wanted.fields["agent"], change.wanted.fields["scopes"]
        issuers.map_identity(
            issuer_id=run.issuer_id(issuer), subject=subject, agent_id=run.agent_id(agent), scopes=scopes, by=run.by
        )


# Notifications.


def _end_notifications(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        channels.end_notification(notification_id=_current(change).ref, reason=run.reason, by=run.by)


def _set_notifications(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.action is Action.END:
        return
    entry = _wanted(change)
    events = entry.fields["events"]
    if change.action is Action.CHANGE:
        channels.change_notification(notification_id=_current(change).ref, events=events, by=run.by)
        return
    channel, target = entry.identity
    _, secret = channels.set_notification(channel=channel, target=target, events=events, by=run.by)
    if secret:
        run.shown_once[target] = secret


# Policy and people.


def _policy(run: ConfigurationRun, change: ConfigurationChange) -> None:
    policies.draft_policy(document=_wanted(change).fields["document"], note=run.reason, by=run.by)


def _give_roles(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.wanted is None:
        return
    tenant = Tenant.objects.get(pk=run.by.tenant_id)
    user = get_user_model().objects.get(pk=change.wanted.ref)
    held = change.current.fields["roles"] if change.current else []
    for role in change.wanted.fields["roles"]:
        if role not in held:
            members.give_membership(tenant=tenant, user=user, role=Role(role), reason=run.reason, by=run.by)


def _exceptions(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.wanted is None or "exceptions" not in change.wanted.fields:
        return
    held = change.current.get("exceptions") if change.current else []
    wanted = change.wanted.get("exceptions")
    with locate_problems("/exceptions", whole=True):
        for said, do in [
            *((each, members.take_permission) for each in held if each not in wanted),
            *((each, members.give_permission) for each in wanted if each not in held),
        ]:
            (kind,) = said.keys() - {"permission"}
            thing = thing_named(kind, said[kind], by=run.by)
            do(user_id=change.wanted.ref, permission=said["permission"], on=thing, by=run.by)


def _take_roles(run: ConfigurationRun, change: ConfigurationChange) -> None:
    if change.current is None:
        return
    kept = change.wanted.fields["roles"] if change.wanted else []
    for role in change.current.fields["roles"]:
        if role not in kept:
            members.end_membership(user_id=change.current.ref, role=Role(role), reason=run.reason, by=run.by)


STEPS: list[tuple[str, Callable[[ConfigurationRun, ConfigurationChange], None]]] = [
    ("agents", _start_agents),
    ("issuers", _start_issuers),
    ("installations", _installation),
    ("model_providers", _start_providers),
    ("models", _model),
    ("models", _fallbacks),
    ("model_providers", _stop_providers),
    ("model_prefix", _model_prefix),
    (PRICES, _prices),
    ("grants", _end_grants),
    ("grants", _give_grants),
    ("budgets", _budget),
    ("identities", _identity),
    ("notifications", _end_notifications),
    ("notifications", _set_notifications),
    (POLICY, _policy),
    ("members", _give_roles),
    ("members", _exceptions),
    ("members", _take_roles),
    ("agents", _stop_agents),
    ("issuers", _stop_issuers),
]
