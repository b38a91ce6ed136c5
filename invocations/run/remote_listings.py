"""Remote listings: how a run holds what a server somewhere else lists against what was reviewed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError

from invocations.models import Invocation
from invocations.problems import OutputInvalid, ToolDrifted, ToolSaysInvalidArgument, ToolSaysUpstreamError
from invocations.sandbox.egress.remote_way import CALL
from invocations.sandbox.problems import ServiceAnswerUnusable
from kernel.database.connections import database_time
from registry.installations.drift import (
    UnheldCalls,
    find_listing_held,
    note_listing_held,
    pause_drifted,
    was_listing_held,
)

if TYPE_CHECKING:
    from datetime import datetime

    from django.db.models import QuerySet

    from invocations.end.end_record import Ending
    from registry.models import ToolVersion

log = logging.getLogger(__name__)
LIST = "tools/list"
MAX_NAMED = 3
# How calls end where the server has another tool by now than the one that was reviewed, or none: it does not take what that takes,
# returns something else, or says an error of its own. Whether it is so the list says, which is looked at before the next call.
DOUBTFUL = (
    OutputInvalid.reason,
    ServiceAnswerUnusable.reason,
    ToolSaysInvalidArgument.reason,
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
                unheld=_find_unheld(invocation, version),
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
    return (
        since is not None and _of_same(invocation, version).filter(reason__in=DOUBTFUL, finished_at__gt=since).exists()
    )


def _find_held(invocation: Invocation, version: ToolVersion) -> datetime | None:
    return find_listing_held(tenant_id=invocation.tenant_id, version=version, account_id=invocation.account_id)


def _of_same(invocation: Invocation, version: ToolVersion) -> QuerySet[Invocation]:
    """Other calls that ask the same server for the same tool, as the same one."""
    rows = Invocation.objects.filter(tenant_id=invocation.tenant_id, tool=invocation.tool, version=version)
    return rows.filter(account_id=invocation.account_id).exclude(pk=invocation.pk)


def _find_unheld(invocation: Invocation, version: ToolVersion) -> UnheldCalls | None:
    """Calls since the list was last as reviewed, none of which has found it so. None where there are none."""
    since = _find_held(invocation, version)
    if since is None:
        return None
    rows = _of_same(invocation, version).filter(started_at__gt=since).exclude(reason=ToolDrifted.reason)
    count = rows.count()
    some = [each.wire_id for each in rows.order_by("-pk")[:MAX_NAMED]]
    return UnheldCalls(since, count, some) if count else None


def _was_held(ending: Ending) -> bool:
    """The box calls the tool only after the list has held; the gate has seen both."""
    seen = [each.service for each in ending.outcome.connections if each.service] if ending.outcome else []
    lists = [each for each in seen if each.asks == LIST]
    return bool(lists) and all(each.complete for each in lists) and any(each.asks == CALL for each in seen)
