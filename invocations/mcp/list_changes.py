"""List changes: in which tenants something was done lately that may have changed what their agents are shown.

Every change is a fact, written in the transaction that makes it, so the facts of the last seconds say it for all processes, of
whatever shape the hub is. Whether the list of an agent is another one is then computed (:mod:`invocations.mcp.list_digests`); that a
noun is here without need costs that and no more.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from django.utils import timezone

from evidence.kinds import Kind
from evidence.models import Fact
from kernel.database.tenancy import hub_wide
from kernel.ids import lowest_id

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

# What a publisher does to a tool reaches every tenant that has it, and a kill switch may be of the whole hub.
OF_ALL_TENANTS = frozenset({"halt", "tool", "version"})
OF_ONE_TENANT = frozenset({"agent", "connection", "delegation", "grant", "installation", "secret"})
# Ids are made before their transactions commit, and by the clocks of several hosts. What takes longer is found by and by (HEAL_S).
WINDOW = timedelta(seconds=10)
LONGEST_GAP = timedelta(seconds=60)  # between two looks; after a longer one anything may have happened


def _noun(kind: str) -> str:
    return kind.partition(".")[0]


KINDS = [str(kind) for kind in Kind if _noun(kind) in OF_ALL_TENANTS | OF_ONE_TENANT]


class ListChanges(NamedTuple):
    """``everywhere``: of all tenants; else of these."""

    everywhere: bool = False
    tenants: frozenset[UUID] = frozenset()


class ChangeReader:
    """Reads each fact once. For one thread at a time."""

    def __init__(self) -> None:
        self._seen: frozenset[UUID] = frozenset()
        self._looked_at: datetime | None = None  # the last time, if that came to its end

    def read_changes(self) -> ListChanges:
        """What happened since the last time, however long ago; the first time, in the last seconds."""
        now = timezone.now()
        last = min(self._looked_at or now, now)
        was_long_ago = now - last > LONGEST_GAP
        since = now if was_long_ago else last
        with hub_wide():
            rows = Fact.objects.filter(id__gt=lowest_id(since - WINDOW), kind__in=KINDS)
            found = list(rows.values_list("pk", "tenant_id", "kind"))
        new = [(tenant, kind) for id, tenant, kind in found if id not in self._seen]
        self._seen, self._looked_at = frozenset(id for id, _, _ in found), now
        return ListChanges(
            was_long_ago or any(_noun(kind) in OF_ALL_TENANTS for _, kind in new),
            frozenset(tenant for tenant, _ in new),
        )
