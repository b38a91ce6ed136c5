"""Drift: what becomes of an installed tool of a server somewhere else that lists it otherwise than it was reviewed.

What was reviewed is not there any more, so the tenant's calls stop until somebody has looked. That what the server lists was held
against the review is remembered for some minutes, and for the settings that it was asked with.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from django.db import transaction

from access.models import ServerAccount
from access.notifications.services import notify_channels
from kernel.database.connections import database_time
from kernel.principal import Principal
from kernel.problems import Conflict
from registry.installations.services import MAX_REASON, change_state, locked_installation
from registry.models import Installation, InstallationState, Secret
from registry.problems import NotInstalled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from registry.models import ToolVersion

EVENT = "tool.drifted"
HOLDS_FOR = timedelta(minutes=5)
MAX_LISTS = 100  # of one account, the newest
PARTS = frozenset(
    {"name", "title", "description", "inputSchema", "outputSchema", "annotations", "icons", "execution", "other"}
)


def was_listing_held(*, tenant_id: UUID, version: ToolVersion, account_id: UUID | None = None) -> bool:
    """Whether the list of the tool's server was held against this version within the last minutes, with the settings of now; and,
    where it is asked as a person, by that person's account: a server may list something else to each.
    """
    row = _find_installation(tenant_id, version)
    if row is None:
        return False
    held = row.listing_held_at if account_id is None else _find_held(account_id, version)
    if held is None or held < max(row.changed_at, database_time() - HOLDS_FOR):
        return False
    names = set(row.secrets.values())
    return not Secret.objects.filter(tenant_id=tenant_id, name__in=names, set_at__gt=held).exists()


def find_listing_held(*, tenant_id: UUID, version: ToolVersion, account_id: UUID | None = None) -> datetime | None:
    """When it was held against this version the last time, whatever the settings are now, by this account; None: never."""
    if account_id is not None:
        return _find_held(account_id, version)
    row = _find_installation(tenant_id, version)
    return row.listing_held_at if row is not None else None


def find_listing_held_of_any(*, tenant_id: UUID, version: ToolVersion) -> datetime | None:
    """The same of whichever account has seen it last."""
    rows = ServerAccount.objects.filter(tenant_id=tenant_id, lists_held__has_key=str(version.pk))
    held = [each[str(version.pk)] for each in rows.values_list("lists_held", flat=True).iterator()]
    return datetime.fromisoformat(max(held)) if held else None


def _find_installation(tenant_id: UUID, version: ToolVersion) -> Installation | None:
    rows = Installation.objects.filter(tenant_id=tenant_id, name=version.tool.name, version=version)
    return rows.exclude(state=InstallationState.REMOVED).first()


def _find_held(account_id: UUID, version: ToolVersion) -> datetime | None:
    known = ServerAccount.objects.filter(pk=account_id).values_list("lists_held", flat=True).first()
    at = (known or {}).get(str(version.pk))
    return datetime.fromisoformat(at) if at else None


def _note_held(account_id: UUID, version: ToolVersion, at: datetime) -> None:
    """What another run notes at this moment may be lost: that costs a look, and nothing else."""
    row = ServerAccount.objects.filter(pk=account_id).only("lists_held").first()
    if row is not None:
        known = sorted((row.lists_held | {str(version.pk): at.isoformat()}).items(), key=lambda each: each[1])
        ServerAccount.objects.filter(pk=account_id).update(lists_held=dict(known[-MAX_LISTS:]))


def note_listing_held(*, tenant_id: UUID, version: ToolVersion, account_id: UUID | None = None, at: datetime) -> None:
    """``at``: when the run began that has seen the list, so that what was set meanwhile is asked with anew."""
    if account_id is not None:
        _note_held(account_id, version, at)
        return
    rows = Installation.objects.filter(tenant_id=tenant_id, name=version.tool.name, version=version)
    rows.exclude(state=InstallationState.REMOVED).update(listing_held_at=at)


@dataclass(frozen=True, slots=True)
class UnheldCalls:
    """Calls that ran after the list was held against the review for the last time: what has changed since, they may have met.
    ``some``: wire ids of the newest."""

    since: datetime
    count: int
    some: Sequence[str]

    def describe(self) -> str:
        calls = "1 call" if self.count == 1 else f"{self.count:,} calls"
        more = "" if self.count == len(self.some) else " and others"
        return (
            f" {calls} ran after {self.since:%Y-%m-%d %H:%M:%S} UTC, when it listed the tool as reviewed, and may have met "
            f"the change: {', '.join(self.some)}{more}."
        )


@transaction.atomic
def pause_drifted(*, tenant_id: UUID, version: ToolVersion, changed: Sequence[str], unheld: str = "") -> bool:
    """Pause the tenant's installation and tell its operators; false where it has another version by now, or does not run anyway.
    ``unheld``: what the reason, which is kept as evidence, says of calls that may have met the change."""
    name = version.tool.name
    by = Principal.system("drift", tenant_id=tenant_id)
    try:
        if locked_installation(name, by=by).version_id != version.pk:
            return False
    except NotInstalled:
        return False
    what = ", ".join(each for each in changed if each in PARTS) or "the tool"
    reason = (
        f"Its server lists it otherwise than {version.version} was reviewed with: {what} changed. Bring it again, have the next "
        f"version reviewed, then resume.{unheld}"
    )
    if len(reason) > MAX_REASON:  # a tool that has changed is paused, however much there is to say of it
        reason = reason[: MAX_REASON - 1].rpartition(" ")[0] + "…"
    with suppress(Conflict), transaction.atomic():
        row = change_state(name, InstallationState.PAUSED, "paused", reason=reason, by=by)
        said = {"tool": name, "version": version.version, "url": f"/tools/{name}"}
        notify_channels(EVENT, subject=row.wire_id, body=said, tenant_id=tenant_id)
        return True
    return False
