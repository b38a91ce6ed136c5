"""Import lister: what workers do for imports, whose servers are started in a box to see what they list.

The package is resolved and installed as the dependencies of a version are; nothing of it is run but in the box. Whoever is at it holds
a lease; what a worker has left is taken by the next who looks. When a lease has ended it says until when the tenant was served.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.db import DatabaseError, transaction
from django.db.models import F, Q

from kernel.database.connections import database_time, release_connection
from kernel.principal import Principal
from kernel.problems import Problem
from registry.dependencies import build_steps
from registry.dependencies.failures import (
    CannotBuild,
    CannotBuildYet,
    Failure,
    pause_after,
    unexpected_failure,
    worker_lost,
)
from registry.dependencies.pip import ProgressHooks
from registry.dependencies.tenant_order import order_by_turn
from registry.imports.models import Import, ImportKind, ImportState
from registry.imports.services import keep_listing
from unitools.npm_names import is_of_npm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from unitools.mcp_listings import Listing

log = logging.getLogger("toolhub.imports")
LEASE = timedelta(seconds=30)
MAX_ATTEMPTS = 3
TELL_EVERY_S = 1.0
MAX_PROGRESS = 12


@dataclass(frozen=True, slots=True)
class ListedServer:
    """What a server lists, which version of its package it is, and how it was started."""

    listing: Listing
    version: str
    start: dict[str, Any]


if TYPE_CHECKING:
    ListServer = Callable[[dict[str, Any], Path, Callable[[], None]], ListedServer]


class _LeaseLost(Exception):
    """Somebody else is at it, it was removed or begun anew, or this process is told to stop."""


class _Claim:
    """One import that this process is at: says what is being done, and finds out whether to go on."""

    def __init__(self, row: Import, is_stopped: Callable[[], bool]) -> None:
        self.row, self.is_stopped = row, is_stopped
        self.lines: list[str] = []
        self.due = 0.0

    def say(self, line: str) -> None:
        self.lines = [*self.lines, line][-MAX_PROGRESS:]

    def beat(self) -> None:
        if self.is_stopped():
            raise _LeaseLost
        if time.monotonic() < self.due:
            return
        self.due = time.monotonic() + TELL_EVERY_S
        try:
            kept = self._mine().update(lease_until=database_time() + LEASE, progress=self.lines)
        except DatabaseError as error:
            log.warning("The progress of an import was not written down, trying again: %s", error)
            return
        finally:
            release_connection()
        if not kept:
            raise _LeaseLost

    def _mine(self) -> Any:
        return Import.objects.filter(pk=self.row.pk, worker=self.row.worker, state=ImportState.LISTING)

    def give_back(self) -> None:
        self._mine().update(lease_until=None, worker="", attempt=F("attempt") - 1, progress=[])

    def put_off(self, why: str) -> None:
        """Until a pause is over, and behind what else waits then. The attempt counts."""
        until = database_time() + pause_after(self.row.attempt)
        self._mine().update(lease_until=until, changed_at=database_time(), worker="", progress=[why])

    @transaction.atomic
    def keep(self, found: ListedServer) -> None:
        row = self._mine().select_for_update().first()
        if row is None:
            return
        row.lease_until = database_time()
        row.source = row.source | {"found": {"version": found.version, "start": found.start}}
        keep_listing(row, found.listing, by=Principal.system("imports", tenant_id=row.tenant_id))

    @transaction.atomic
    def fail(self, failure: Failure) -> None:
        row = self._mine().select_for_update().first()
        if row is None:
            return
        row.state, row.failure = ImportState.FAILED, failure.to_json()
        row.progress, row.lease_until, row.worker = [], database_time(), ""
        row.save(update_fields=["state", "failure", "progress", "lease_until", "worker", "changed_at"])


class ImportLister:
    """``list_server`` starts a server of a folder of packages in a box: its ``source`` as an import keeps it."""

    def __init__(self, list_server: ListServer) -> None:
        self.list_server = list_server

    def is_waiting(self) -> bool:
        return bool(_waiting().exists())

    def do_next(self, is_stopped: Callable[[], bool]) -> bool:
        row = _claim()
        if row is None:
            return False
        claim = _Claim(row, is_stopped)
        release_connection()
        try:
            claim.keep(self._list(row, claim))
        except _LeaseLost:
            claim.give_back()
        except CannotBuildYet as error:
            if row.attempt >= min(error.attempts, MAX_ATTEMPTS):
                claim.fail(error.failure)
            else:
                claim.put_off(f"{error.failure.message} It is tried again.")
        except CannotBuild as error:
            claim.fail(error.failure)
        except Problem as problem:
            claim.fail(Failure("listing_unfit", problem.detail, problem.remedy))
        except DatabaseError:
            raise  # the lease runs out, and the next who looks takes it
        except Exception:
            log.exception("The server of %s was not listed", row.group)
            claim.fail(unexpected_failure())
        return True

    def _list(self, row: Import, claim: _Claim) -> ListedServer:
        source = row.source
        talk = ProgressHooks(claim.say, claim.beat)
        if is_of_npm(source["package"]):  # its lock came with it: a hub resolves nothing of npm
            folder, _ = build_steps.build_folder(source["lock"], (), talk=talk)
        else:
            wanted = f"{source['package']}=={source['version']}" if source["version"] else source["package"]
            claim.say(f"Resolving {wanted}")
            lines = build_steps.resolve_requirements([wanted], talk=talk, constraints=source["constraints"])
            folder, _ = build_steps.build_folder(lines, [wanted], talk=talk)
        claim.say("Starting the server, to see what it lists")
        claim.due = 0.0
        claim.beat()
        return self.list_server(source, folder, claim.beat)


def _waiting() -> Any:
    free = Q(lease_until=None) | Q(lease_until__lte=database_time())
    return Import.objects.filter(free, state=ImportState.LISTING, kind=ImportKind.PACKAGE)


@transaction.atomic
def _claim() -> Import | None:
    served = Import.objects.filter(kind=ImportKind.PACKAGE, lease_until__isnull=False)
    waiting = order_by_turn(_waiting(), tenant="tenant_id", served=served, served_at="lease_until")
    row = waiting.select_for_update(skip_locked=True).first()
    if row is None:
        return None
    if row.attempt >= MAX_ATTEMPTS:
        row.state, row.failure = ImportState.FAILED, worker_lost(row.attempt).to_json()
        row.save(update_fields=["state", "failure", "changed_at"])
        return None
    row.attempt += 1
    row.worker = f"{socket.gethostname()[:40]}:{os.getpid()}:{secrets.token_hex(8)}"
    row.lease_until, row.progress = database_time() + LEASE, []
    row.save(update_fields=["attempt", "worker", "lease_until", "progress", "changed_at"])
    found: Import = row
    return found
