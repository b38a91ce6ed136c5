"""Configuration state: what a tenant's configuration is now.

Read from the rows, in the words of a file. Values of secrets and keys are not looked at.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.db.models import Q

from access.models import (
    Agent,
    AgentIdentity,
    Budget,
    BudgetScope,
    Grant,
    Membership,
    Notification,
    PolicyState,
    PolicyVersion,
    Tenant,
    TrustedIssuer,
)
from access.notifications.services import EVENTS
from access.object_permissions.rules import load_object_permissions
from access.roles import SCOPES, Role
from kernel.canonical import encode_hash_input
from kernel.database.connections import database_time
from kernel.database.tenancy import hub_wide
from registry.model_prefixes.services import find_prefix
from registry.model_prices.services import find_prices_in_force
from registry.model_providers.manifests import read_terms
from registry.model_providers.rows import FIELDS
from registry.models import Installation, InstallationState, ModelProvider, Tool, ToolKind
from toolhub.configuration.document import EVERY_AGENT, POLICY, PRICES, SECTIONS, ConfigurationEntry, Entries
from toolhub.configuration.normal_form import (
    format_moment,
    normalize_conditions,
    normalize_exceptions,
    normalize_expression,
    normalize_limits,
    order_values,
    strip_private_keys,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from uuid import UUID


@dataclass(frozen=True, slots=True)
class ConfigurationState:
    """``drafts``: digest → label of the policy drafts that wait."""

    slug: str
    entries: Entries
    drafts: dict[str, str] = field(default_factory=dict)
    dormant: frozenset[str] = frozenset()  # issuers that are not trusted now; their subjects are mapped still


def read_state(tenant_id: UUID, *, issuers: Collection[str] = (), people: bool = True) -> ConfigurationState:
    """``issuers``: those whose subjects count although they are not trusted, since they are about to be."""
    read: dict[str, Callable[[UUID], Iterator[ConfigurationEntry]]] = {
        "agents": _agents,
        "installations": _installations,
        "model_providers": _model_providers,
        "models": _models,
        "model_prefix": _model_prefix,
        PRICES: _prices,
        "grants": _grants,
        "budgets": _budgets,
        "issuers": _issuers,
        "identities": lambda each: _identities(each, issuers),
        "notifications": _notifications,
        POLICY: _policy,
        "members": _members,
    }
    names = [name for name in SECTIONS if people or name != "members"]
    sleeping = TrustedIssuer.objects.filter(tenant_id=tenant_id, issuer__in=issuers).exclude(disabled_at=None)
    drafts = PolicyVersion.objects.filter(tenant_id=tenant_id, state=PolicyState.DRAFT).order_by("number")
    return ConfigurationState(
        slug=Tenant.objects.get(pk=tenant_id).slug,
        entries={name: sorted(read[name](tenant_id), key=_place) for name in names},
        drafts={row.digest: row.label for row in drafts},
        dormant=frozenset(sleeping.exclude(identities=None).values_list("issuer", flat=True)),
    )


def _place(entry: ConfigurationEntry) -> tuple[list[str], bytes]:
    return [str(part) for part in entry.identity], encode_hash_input(entry.fields)[1]


def _agents(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    """An agent that is called like the sign for all of them could not be told apart from it, and stays out of files."""
    for row in Agent.objects.filter(tenant_id=tenant_id).exclude(name=EVERY_AGENT):
        yield ConfigurationEntry("agents", (row.name,), {"disabled": row.disabled_at is not None}, ref=row.pk)


def _installations(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    found = Installation.objects.filter(tenant_id=tenant_id).of_kind(ToolKind.TOOL)
    rows = list(found.exclude(state=InstallationState.REMOVED))
    with hub_wide():  # whom a tool that is installed here belongs to
        tools = Tool.objects.filter(pk__in=[row.tool_id for row in rows])
        publishers = dict(tools.values_list("pk", "tenant__slug"))
    for row in rows:
        fields = {
            "publisher": publishers[row.tool_id],
            "pin": row.pin,
            "config": row.config,
            "hosts": row.hosts,
            "paths": row.paths,
            "secrets": row.secrets,
            "state": str(row.state),
        }
        yield ConfigurationEntry("installations", (row.name,), fields, ref=row.pk)


def _model_providers(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    for row in ModelProvider.objects.filter(tenant_id=tenant_id):
        fields = {name: getattr(row, name) for name in FIELDS} | {"state": str(row.state)}
        yield ConfigurationEntry("model_providers", (row.name,), fields, ref=row.pk)


def _models(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    """Paused is what was paused by itself; a provider says the same of all its models."""
    found = Installation.objects.filter(tenant_id=tenant_id).of_kind(ToolKind.MODEL).select_related("version")
    for row in found.exclude(state=InstallationState.REMOVED):
        assert row.version is not None
        _, provider, alias = row.name.split(".")
        fields = {**read_terms(row.version.view), "state": str(row.state)}
        yield ConfigurationEntry("models", (provider, alias), fields, ref=row.pk)


def _model_prefix(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    row = find_prefix(tenant_id)
    yield ConfigurationEntry("model_prefix", (), {"text": row.text if row is not None else ""})


def _prices(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    row = find_prices_in_force(tenant_id)
    if row is not None:
        yield ConfigurationEntry(PRICES, (), row.document, ref=row.pk)


def _grants(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    """Those that people gave; what agents handed on from them is not a matter of files, and ends with them."""
    rows = Grant.objects.filter(tenant_id=tenant_id, delegated_from=None).in_force(database_time())
    rows = rows.exclude(agent__name=EVERY_AGENT)
    limits: dict[UUID | None, list[dict[str, Any]]] = defaultdict(list)
    for each in Budget.objects.filter(tenant_id=tenant_id, scope=BudgetScope.GRANT, ended_at=None):
        limits[each.grant_id].append(
            {"dimension": str(each.dimension), "amount": each.amount, "window_s": each.window_s}
        )
    for row in rows.select_related("agent"):
        fields = {
            "capabilities": row.capabilities,
            "scopes": row.scopes,
            "conditions": normalize_conditions(row.conditions),
            "limits": normalize_limits(limits[row.pk]),
            "expires_at": format_moment(row.expires_at) if row.expires_at else None,
            "may_delegate": row.may_delegate,
            "reason": row.reason,
        }
        agent = row.agent.name if row.agent else EVERY_AGENT
        yield ConfigurationEntry("grants", (agent, normalize_expression(row.tools)), fields, ref=row.pk)


def _budgets(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    kept = [BudgetScope.TENANT, BudgetScope.AGENT, BudgetScope.TOOL]  # the others are a grant's or a manifest's
    rows = Budget.objects.filter(tenant_id=tenant_id, ended_at=None, scope__in=kept).exclude(agent__name=EVERY_AGENT)
    for row in rows.select_related("agent"):
        identity = (
            str(row.scope),
            row.agent.name if row.agent else "",
            row.tool,
            str(row.dimension),
            row.window_s,
        )
        yield ConfigurationEntry("budgets", identity, {"amount": row.amount, "reason": row.reason}, ref=row.pk)


def _issuers(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    for row in TrustedIssuer.objects.filter(tenant_id=tenant_id, disabled_at=None):
        fields = {"audience": row.audience, "jwks_url": row.jwks_url, "jwks": strip_private_keys(row.jwks)}
        yield ConfigurationEntry("issuers", (row.issuer,), fields, ref=row.pk)


def _identities(tenant_id: UUID, issuers: Collection[str]) -> Iterator[ConfigurationEntry]:
    rows = AgentIdentity.objects.filter(Q(issuer__disabled_at=None) | Q(issuer__issuer__in=issuers))
    rows = rows.filter(issuer__tenant_id=tenant_id).exclude(agent__name=EVERY_AGENT)
    for row in rows.select_related("issuer", "agent"):
        fields = {"agent": row.agent.name, "scopes": order_values(row.scopes, SCOPES)}
        yield ConfigurationEntry("identities", (row.issuer.issuer, row.subject), fields, ref=row.pk)


def _notifications(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    for row in Notification.objects.filter(tenant_id=tenant_id, disabled_at=None):
        fields = {"events": order_values(row.events, EVENTS)}
        yield ConfigurationEntry("notifications", (str(row.channel), row.target), fields, ref=row.pk)


def _policy(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    for row in PolicyVersion.objects.filter(tenant_id=tenant_id, state=PolicyState.IN_FORCE):
        yield ConfigurationEntry(POLICY, (), {"document": row.document}, ref=row.pk)


def _members(tenant_id: UUID) -> Iterator[ConfigurationEntry]:
    roles: dict[tuple[int, str], set[str]] = defaultdict(set)
    for row in Membership.objects.filter(tenant_id=tenant_id).select_related("user"):
        roles[row.user_id, row.user.get_username()].add(str(row.role))
    beside = load_object_permissions(tenant_id, users=[user_id for user_id, _ in roles])
    for (user_id, username), held in roles.items():
        fields: dict[str, Any] = {"roles": order_values(held, Role.values)}
        exceptions = [
            {"permission": permission, thing._meta.model_name: thing.name}
            for permission, thing in beside.get(user_id, [])
            if thing.name != EVERY_AGENT
        ]
        if exceptions:
            fields["exceptions"] = normalize_exceptions(exceptions)
        yield ConfigurationEntry("members", (username,), fields, ref=user_id)
