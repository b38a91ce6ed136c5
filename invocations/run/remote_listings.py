"""Remote listings: how a run holds what a server somewhere else lists against what was reviewed."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q

from invocations.end.problems import ServerSaysError, ToolSaysInvalidArgument, ToolSaysUpstreamError
from invocations.models import Invocation
from invocations.problems import OutputInvalid, ToolDrifted
from invocations.sandbox.egress.remote_way import CALL
from invocations.sandbox.problems import ServiceAnswerUnusable
from kernel.database.connections import database_time
from kernel.ids import lowest_id
from registry.installations.drift import (
    UnheldCalls,
    find_listing_held,
    find_listing_held_of_any,
    note_listing_held,
    pause_drifted,
    was_listing_held,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from invocations.end.endings import Ending
    from registry.models import ToolVersion

log = logging.getLogger(__name__)
LIST = "tools/list"
MAX_NAMED = 3
# The longest that a call may take, beside the time for which it may be held for a person.
QUEUED_AND_RUN = timedelta(days=1)
NOT_FOUND_OUT = " Which calls may have met the change could not be found out."
# How calls end where the server has another tool by now than the one that was reviewed, or none: it does not take what that takes,
# returns something else, or says an error of its own. Whether it is so the list says, which is looked at before the next call.
DOUBTFUL = (
    OutputInvalid.reason,
    ServiceAnswerUnusable.reason,
    ToolSaysInvalidArgument.reason,
    ServerSaysError.reason,
    ToolSaysUpstreamError.reason,
)


def build_request(invocation: Invocation) -> dict[str, Any]:
    """What the box asks for: the tool, and the digests to hold what the server lists against, where that was not done of late."""
    version = invocation.version
    assert version is not None
    asks = version.view.server_request
    if version.view.remote is None or (
        was_listing_held(tenant_id=invocation.tenant_id, version=version, account_id=invocation.account_id)
        and not _is_doubtful(invocation, version)
    ):
        return asks
    origin = version.view.origin
    return asks | {"entry": origin["entry_digest"], "listing": origin["listing_digest"]}


def follow_listing(invocation: Invocation, ending: Ending) -> None:
    """After the call's end: remember that the list was as reviewed, or pause the tool. A database that is away costs the next call a
    look, and nothing else."""
    version = invocation.version
    if version is None or version.view.remote is None:
        return
    try:
        if isinstance(ending.problem, ToolDrifted):
            pause_drifted(
                tenant_id=invocation.tenant_id,
                version=version,
                changed=ending.problem.details["changed"],
                unheld=_describe_unheld(invocation, version),
            )
        elif _was_held(ending):
            at = invocation.started_at or database_time()
            note_listing_held(tenant_id=invocation.tenant_id, version=version, account_id=invocation.account_id, at=at)
    except (OperationalError, InterfaceError) as error:
        log.warning("What the server of %s lists was not noted: %s", invocation.tool, error)
    except Exception:  # the call has its End, and the worker goes on
        log.exception("What the server of %s lists was not noted", invocation.tool)


def _is_doubtful(invocation: Invocation, version: ToolVersion) -> bool:
    """Whether a call since the list was last as reviewed was answered as by another tool."""
    since = _find_held(invocation, version)
    if since is None:
        return False
    rows = _list_ended_since(since, invocation, version).filter(account_id=invocation.account_id, reason__in=DOUBTFUL)
    return rows.exists()


def _find_held(invocation: Invocation, version: ToolVersion) -> datetime | None:
    return find_listing_held(tenant_id=invocation.tenant_id, version=version, account_id=invocation.account_id)


def _list_ended_since(since: datetime, invocation: Invocation, version: ToolVersion) -> QuerySet[Invocation]:
    """Other calls of the tool that have ended since then, or are under way: of the ids that calls of this time can have, and not of
    all that there ever were."""
    oldest = lowest_id(since - timedelta(seconds=settings.TOOLHUB_HOLD_S) - QUEUED_AND_RUN)
    rows = Invocation.objects.filter(tenant_id=invocation.tenant_id, tool=invocation.tool, pk__gte=oldest)
    return rows.filter(Q(finished_at__gt=since) | Q(finished_at=None), version=version).exclude(pk=invocation.pk)


def _describe_unheld(invocation: Invocation, version: ToolVersion) -> str:
    """For the reason why the tool is paused, which it is whether or not this can be said."""
    try:
        with transaction.atomic():
            found = _find_unheld(invocation, version)
    except Exception:
        log.exception("Which calls of %s may have met a change was not found out", invocation.tool)
        return NOT_FOUND_OUT
    return found.describe() if found else ""


def _find_unheld(invocation: Invocation, version: ToolVersion) -> UnheldCalls | None:
    """Calls by any account that ran since the list was last as reviewed, but those that have found it otherwise; also the one that has
    seen it so, since a server may change between its look and its call. None where there are none."""
    since = _find_held(invocation, version)
    if since is None and invocation.account_id is not None:
        since = find_listing_held_of_any(tenant_id=invocation.tenant_id, version=version)
    if since is None:
        return None
    ran = _list_ended_since(since, invocation, version).filter(started_at__isnull=False)
    rows = ran.exclude(reason=ToolDrifted.reason)
    count = rows.count()
    some = [each.wire_id for each in rows.order_by("-pk")[:MAX_NAMED]]
    return UnheldCalls(since, count, some) if count else None


def _was_held(ending: Ending) -> bool:
    """The box calls the tool only after the list has held; the gate has seen both."""
    seen = [each.service for each in ending.outcome.connections if each.service] if ending.outcome else []
    lists = [each for each in seen if each.asks == LIST]
    return bool(lists) and all(each.complete for each in lists) and any(each.asks == CALL for each in seen)
