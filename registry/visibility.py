"""Visibility: which tools are shown to whoever did not ask for others?

Those that work, that nothing stops and that are not deprecated: in every list that callers and their models see. Deprecated tools
are found by asking for their state, and by their name. :func:`shown_to` says it to the database, for lists of any length (REST);
:func:`check_shown` says it of one tool, and what keeps it back (dialects, MCP). A test holds each list against the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Q

from access.models import Halt, Reach
from registry.callability import check_offered
from registry.deprecation import retirement_in
from registry.models import InstallationState, ToolState, VersionState
from registry.problems import ToolNotEnabled
from toolhub.kernel.ids import decode

if TYPE_CHECKING:
    from uuid import UUID

    from registry.standing import Standing
    from toolhub.kernel.principal import Principal

NOTHING = Q(pk__in=[])
EVERYTHING = ~NOTHING


def in_order(*, tool: str, version: str) -> Q:
    """Tools that their publisher keeps enabled, with a version that was approved and not taken back.

    ``tool`` and ``version``: the lookups that lead to them, the first one with ``__`` at its end or empty.
    """
    return Q(
        **{
            f"{tool}state": ToolState.ENABLED,
            f"{version}__review_state": VersionState.APPROVED,
            f"{version}__yanked_at": None,
        }
    )


def _stopped(by: Principal) -> Q:
    """Installations in reach of a kill switch that is thrown: the hub's, the tenant's, or the publisher's for its tool."""
    found = NOTHING
    for owner, reach, target in Halt.objects.filter(lifted_at=None).values_list("tenant_id", "reach", "target"):
        here = owner in (None, by.tenant_id)
        whose = Q() if here else Q(tool__tenant_id=owner)
        if reach == Reach.TOOL:
            found |= whose & Q(name=target)
        elif reach == Reach.VERSION:
            found |= whose & Q(version_id=decode("tvn", target))
        elif here and (reach != Reach.AGENT or target == by.id):
            return EVERYTHING
    return found


def shown_to(by: Principal) -> Q:
    """Of the tenant's installations: those that work, and that nothing stops."""
    works = Q(state=InstallationState.ENABLED) & in_order(tool="tool__", version="version")
    return works & ~_stopped(by)


def check_shown(standing: Standing) -> UUID:
    """The version that a call would get now; raises what keeps the tool back from who did not ask for it."""
    version_id = check_offered(standing)
    if retirement := retirement_in(standing):
        raise ToolNotEnabled(retirement.sentence(), remedy="Until then it can be called by its id.")
    return version_id
