"""Remote listings: how a run holds what a server somewhere else lists against what was reviewed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from django.db import InterfaceError, OperationalError

from invocations.problems import ToolDrifted
from invocations.sandbox.egress.remote_way import CALL
from kernel.database.connections import database_time
from registry.installations.drift import note_listing_held, pause_drifted, was_listing_held

if TYPE_CHECKING:
    from invocations.end.end_record import Ending
    from invocations.models import Invocation

log = logging.getLogger(__name__)
LIST = "tools/list"


def build_request(invocation: Invocation) -> dict[str, Any]:
    """What the box asks for: the tool, and the digests to hold what the server lists against, where that was not done of late."""
    version = invocation.version
    assert version is not None
    asks = version.view.server_request
    if version.view.remote is None or was_listing_held(
        tenant_id=invocation.tenant_id, version=version, account_id=invocation.account_id
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
            pause_drifted(tenant_id=invocation.tenant_id, version=version, changed=ending.problem.details["changed"])
        elif _was_held(ending):
            at = invocation.started_at or database_time()
            note_listing_held(tenant_id=invocation.tenant_id, version=version, account_id=invocation.account_id, at=at)
    except (OperationalError, InterfaceError) as error:
        log.warning("What the server of %s lists was not noted: %s", invocation.tool, error)
    except Exception:  # the call has its End, and the worker goes on
        log.exception("What the server of %s lists was not noted", invocation.tool)


def _was_held(ending: Ending) -> bool:
    """The box calls the tool only after the list has held; the gate has seen both."""
    seen = [each.service for each in ending.outcome.connections if each.service] if ending.outcome else []
    lists = [each for each in seen if each.asks == LIST]
    return bool(lists) and all(each.complete for each in lists) and any(each.asks == CALL for each in seen)
