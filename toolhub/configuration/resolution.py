"""Resolution: whether what a file names exists here.

What is named and missing is a finding, but for what nobody can make by a file: people without an account and grants that have
expired are passed over with a warning, so that a file that was right once can be applied again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from allauth.account.models import EmailAddress
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.utils.translation import gettext

from access.members import services as members
from kernel.canonical import compute_digest
from kernel.database.connections import database_time
from toolhub.configuration.document import EVERY_AGENT, POLICY
from toolhub.configuration.findings import build_finding, raise_findings
from toolhub.configuration.normal_form import parse_moment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from toolhub.configuration.document import ConfigurationDocument, ConfigurationEntry, Entries
    from toolhub.configuration.findings import Finding
    from toolhub.configuration.state import ConfigurationState

MAX_WARNINGS = 100


def find_person(name: str, *, tenant_id: UUID) -> Any:
    """The account in use with this user name or, for what looks like one, this address.

    Any tenant can write any address into an account, as its user name too. So outside of this tenant it must have been proved.
    """
    users = get_user_model().objects.filter(is_active=True)
    here = members.find_members(tenant_id).values("pk")
    found = users.filter(username=name).first()
    if "@" not in name or (found is not None and here.filter(pk=found.pk).exists()):
        return found
    proved = EmailAddress.objects.filter(email__iexact=name, verified=True).values("user_id")
    rows = list(users.filter(Q(pk__in=proved) | Q(pk__in=here, email__iexact=name))[:2])
    return rows[0] if len(rows) == 1 else None


def resolve_document(
    document: ConfigurationDocument, state: ConfigurationState, *, tenant_id: UUID
) -> tuple[Entries, list[str]]:
    """What there is to compare, and what was passed over in sentences."""
    check_tenant(document, state)
    raise_findings(list(_missing(document.entries, state)))
    entries = dict(document.entries)
    warnings: list[str] = []
    if "grants" in entries:
        entries["grants"] = list(_that_hold(entries["grants"], warnings))
    if "members" in entries:
        entries["members"] = _people(entries["members"], tenant_id, warnings)
    for entry in entries.get(POLICY, []):
        waiting = state.drafts.get(compute_digest(entry.fields["document"]))
        in_force = [compute_digest(each.fields["document"]) for each in state.entries[POLICY]]
        if waiting and compute_digest(entry.fields["document"]) not in in_force:
            warnings.append(
                gettext("This policy is already waiting to be published, as the draft %(label)s.") % {"label": waiting}
            )
            entries[POLICY] = []
    trusted_anew = {entry.identity[0] for entry in entries.get("issuers", [])} & state.dormant
    warnings += [
        gettext("Subjects mapped earlier can act as their agents again with %(issuer)s.") % {"issuer": issuer}
        for issuer in sorted(trusted_anew)
        if "identities" not in document.prune
    ]
    return entries, warnings[:MAX_WARNINGS]


def check_tenant(document: ConfigurationDocument, state: ConfigurationState) -> None:
    if document.tenant and document.tenant != state.slug:
        raise_findings(
            [build_finding("/tenant", f"This file is for the tenant {document.tenant}, and you act in {state.slug}.")]
        )


def _missing(entries: Entries, state: ConfigurationState) -> Iterator[Finding]:
    agents, issuers = (
        {entry.identity[0] for rows in (state.entries, entries) for entry in rows.get(name, [])}
        for name in ("agents", "issuers")
    )
    for name in ("grants", "budgets", "identities"):
        for entry in entries.get(name, []):
            agent = entry.named.get("agent") or entry.fields.get("agent") or EVERY_AGENT
            if agent != EVERY_AGENT and agent not in agents:
                message = f"There is no agent {agent} here, and none in this file."
                yield build_finding(f"{entry.pointer}/agent", message)
            issuer = entry.named.get("issuer")
            if issuer is not None and issuer not in issuers:
                yield build_finding(
                    f"{entry.pointer}/issuer", f"{issuer} is not trusted here, and is not in this file."
                )


def _that_hold(entries: list[ConfigurationEntry], warnings: list[str]) -> Iterator[ConfigurationEntry]:
    now = database_time()
    for entry in entries:
        until = entry.fields["expires_at"]
        at = parse_moment(until) if until else None
        if at is not None and at <= now:
            agent, tools = entry.identity
            warnings.append(
                gettext("Skipped: the grant of %(agent)s for %(tools)s has expired.") % {"agent": agent, "tools": tools}
            )
        else:
            yield entry


def _people(entries: list[ConfigurationEntry], tenant_id: UUID, warnings: list[str]) -> list[ConfigurationEntry]:
    """As their user names, so that a plan says whose address it was."""
    found: dict[Any, ConfigurationEntry] = {}
    for entry in entries:
        user = find_person(entry.identity[0], tenant_id=tenant_id)
        if user is None:
            warnings.append(
                gettext("Skipped: %(user)s has no account here. Invite them on the People page.")
                % {"user": entry.identity[0]}
            )
            continue
        if user.pk in found:
            raise_findings([build_finding(entry.pointer, f"{found[user.pk].pointer} is about the same person.")])
        found[user.pk] = replace(entry, identity=(user.get_username(),), ref=user.pk)
    return list(found.values())
