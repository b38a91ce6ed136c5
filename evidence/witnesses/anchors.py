"""Anchors: whether everybody whom the settings name has seen the newest checkpoint, and what is wrong with the others.

A loop in any number of keepers; an anchor is claimed by moving its ``next_attempt_at`` ahead. It gets a checkpoint when the global
log has grown, and now and then when it has not, so that silence shows on both sides.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext

from evidence import services as evidence
from evidence.deliveries.queue import claim_row
from evidence.kinds import Kind
from evidence.leaves.hub import AgreedAnchor, RefusedAnchor
from evidence.log.reader import latest_checkpoint, load_tree
from evidence.models import GLOBAL_LOG, Anchor, AnchorKind, Checkpoint
from evidence.verify import notes
from evidence.verify.problems import InvalidEvidence as NotEvidence
from evidence.witnesses.anchor_stores import (
    append_to_file,
    commit_to_git,
    iter_file_notes,
    iter_git_notes,
    read_last_from_file,
    read_last_from_git,
)
from evidence.witnesses.client import OtherHistory, WitnessAddress, ask_witness
from kernel.database.connections import database_time, release_connection
from kernel.database.tenancy import NO_TENANT
from kernel.http.outbound import AddressRefused, OutboundFailed
from kernel.loops import repeat_work
from kernel.principal import Principal

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

log = logging.getLogger("toolhub.witnessing")
EVERY_S = 2.0
AT_MOST_EVERY = {
    AnchorKind.WITNESS: timedelta(seconds=10),
    AnchorKind.FILE: timedelta(minutes=1),
    AnchorKind.GIT: timedelta(minutes=5),
}
AGAIN_AFTER = timedelta(minutes=5)  # a log that stands still: a witness signs the time, too
SILENT_AFTER = timedelta(minutes=15)
PAUSES = tuple(timedelta(seconds=s) for s in (10, 30, 60, 300))
MAX_ERROR = 300


@dataclass(frozen=True, slots=True)
class AnchorTarget:
    """One of those that the settings name. ``show(seen)`` returns the size that it keeps now."""

    name: str
    kind: AnchorKind
    show: Callable[[int], int]


def load_anchor_targets() -> list[AnchorTarget]:
    """Raises ``ValueError`` for a setting that cannot be read."""
    found = [
        AnchorTarget(each.name, AnchorKind.WITNESS, lambda seen, each=each: ask_witness(each, seen=seen))  # type: ignore[misc]
        for each in map(WitnessAddress.parse, settings.TOOLHUB_WITNESSES)
    ]
    if settings.TOOLHUB_ANCHOR_FILE:
        path = Path(settings.TOOLHUB_ANCHOR_FILE)
        found.append(
            AnchorTarget(
                "file",
                AnchorKind.FILE,
                lambda _: _keep(partial(read_last_from_file, path), partial(append_to_file, path)),
            )
        )
    if settings.TOOLHUB_ANCHOR_GIT:
        repository, push = Path(settings.TOOLHUB_ANCHOR_GIT), settings.TOOLHUB_ANCHOR_GIT_PUSH
        keep = partial(commit_to_git, repository, push=push)
        found.append(
            AnchorTarget("git", AnchorKind.GIT, lambda _: _keep(partial(read_last_from_git, repository), keep))
        )
    return found


def _keep(last: Callable[[], str], keep: Callable[[str], None]) -> int:
    note = last()  # first: what another keeper puts there meanwhile would be newer than the log as it was read
    checkpoint = latest_checkpoint(GLOBAL_LOG)
    if checkpoint is None:
        return 0
    if note:
        _check_continues(notes.Checkpoint.parse(notes.split_note(note)[0]), checkpoint)
    release_connection()
    keep(checkpoint.note)
    return checkpoint.size


def _check_continues(kept: notes.Checkpoint, newest: Checkpoint) -> None:
    """Raises :class:`OtherHistory` unless the log as it is stored has all that the last kept checkpoint has."""
    if kept.size > newest.size:
        raise OtherHistory(f"It keeps {kept.size} leaves of a log that has {newest.size} here: this hub was set back.")
    if load_tree(GLOBAL_LOG).root(kept.size) != kept.root:
        raise OtherHistory(f"It keeps another tree of {kept.size} leaves: history was rewritten.")


def update_anchors() -> int:
    """One pass; returns how many have the newest checkpoint now that had not."""
    named = {each.name: each for each in load_anchor_targets()}
    now = database_time()
    forgotten = Anchor.objects.exclude(name__in=named)  # what the settings do not name any more raises no alarm
    if forgotten.exists():  # SQLite writes also for an empty table that it empties
        forgotten.delete()
    for each in named.values():
        Anchor.objects.get_or_create(name=each.name, defaults={"kind": each.kind, "next_attempt_at": now})
    newest = latest_checkpoint(GLOBAL_LOG)
    size = newest.size if newest else 0
    due = Anchor.objects.filter(name__in=named, next_attempt_at__lte=now)
    return sum(
        _show(row, named[row.name]) for row in due if _wants(row, size, now) and claim_row(Anchor.objects.all(), row)
    )


def _wants(row: Anchor, size: int, now: datetime) -> bool:
    """Whether there is news for it; files and repositories are not told again what they have."""
    if not size:
        return False
    if row.anchored_at is None or row.size != size or row.refused_at:
        return True
    return row.kind == AnchorKind.WITNESS and now - row.anchored_at >= AGAIN_AFTER


def _show(row: Anchor, anchor: AnchorTarget) -> bool:
    error, refused, size = "", False, row.size
    try:
        size = anchor.show(row.size)
    except OtherHistory as other:
        error, refused = str(other), True
    except (OutboundFailed, AddressRefused, NotEvidence) as failed:
        error = str(failed)
    except OSError as failed:
        error = failed.strerror or type(failed).__name__
    except Exception as failed:  # what nobody thought of is a failed try like others
        log.exception("%s was not shown the newest checkpoint", row.name)
        error = type(failed).__name__
    finally:
        release_connection()
    _settle(row, size=size, error=error, refused=refused)
    return not error


@transaction.atomic
def _settle(row: Anchor, *, size: int, error: str, refused: bool) -> None:
    now = database_time()
    changes = {"attempts": 0, "last_error": "", "refused_at": None, "size": size, "anchored_at": now}
    changes["next_attempt_at"] = now + AT_MOST_EVERY[AnchorKind(row.kind)]
    if error:
        log.error("%s: %s", row.name, error) if refused else log.warning("%s: %s", row.name, error)
        changes = {
            "attempts": row.attempts + 1,
            "last_error": error[:MAX_ERROR],
            "next_attempt_at": now + PAUSES[min(row.attempts, len(PAUSES) - 1)],
        }
        if refused:
            changes["refused_at"] = row.refused_at or now
    if not Anchor.objects.filter(pk=row.pk, next_attempt_at=row.next_attempt_at).update(**changes):
        return
    if refused != (row.refused_at is not None) and (refused or not error):
        evidence.record(
            kind=Kind.ANCHOR_REFUSED if refused else Kind.ANCHOR_AGREED,
            subject=f"hub:anchor:{row.name}"[:200],
            actor=Principal.system("witnessing", tenant_id=NO_TENANT),
            data=RefusedAnchor(said=error[:MAX_ERROR]) if refused else AgreedAnchor(size=size),
        )


@dataclass(frozen=True, slots=True)
class AnchorStatus:
    """How one of them stands, for people. ``alarm``: a sentence; empty when all is well."""

    anchor: Anchor
    alarm: str


def load_anchor_statuses() -> list[AnchorStatus]:
    """All that the keeper's settings name; for the integrity page and its alarms."""
    now = database_time()
    return [AnchorStatus(row, _alarm(row, now)) for row in Anchor.objects.order_by("kind", "name")]


def _alarm(row: Anchor, now: datetime) -> str:
    if row.refused_at:
        return row.last_error
    silent = row.attempts > len(PAUSES) if row.anchored_at is None else now - row.anchored_at >= SILENT_AFTER
    if row.attempts and silent:
        return gettext("It has not received a checkpoint for a long time. %(error)s") % {"error": row.last_error}
    return ""


def kept_notes() -> Iterator[tuple[str, str]]:
    """``(name, note)`` of every checkpoint that the file and the repository of the settings hold, the oldest first."""
    if settings.TOOLHUB_ANCHOR_FILE and Path(settings.TOOLHUB_ANCHOR_FILE).exists():
        yield from (("file", note) for note in iter_file_notes(Path(settings.TOOLHUB_ANCHOR_FILE)))
    if settings.TOOLHUB_ANCHOR_GIT:
        yield from (("git", note) for note in iter_git_notes(Path(settings.TOOLHUB_ANCHOR_GIT)))


def run_anchoring(stop: threading.Event) -> None:
    """Show checkpoints until told to stop."""
    repeat_work(
        update_anchors, stop, every_s=EVERY_S, what="Checkpoints were not shown", log=log, expected=(ValueError,)
    )
