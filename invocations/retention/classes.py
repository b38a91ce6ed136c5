"""Retention classes: the classes of values that a tenant can set a time for. Says so to evidence when the app is loaded."""

from __future__ import annotations

from functools import partial

from django.utils.translation import gettext_noop as _

from access.budgets.ledger import remove_settled
from evidence.erasures.holders import AFTERWARDS, CLASSES, HOLDERS, RetentionClass
from evidence.models import SnapshotKind
from invocations.retention.erasure import (
    CallHolder,
    ReplayHolder,
    forget_hashes,
    remove_old_artifacts,
    remove_old_files,
    remove_old_values,
)

HOLDERS += [CallHolder(), ReplayHolder()]
AFTERWARDS += [forget_hashes, remove_settled]


def _values(label: str, *kinds: SnapshotKind) -> RetentionClass:
    return RetentionClass(label, partial(remove_old_values, kinds), kinds)


CLASSES |= {
    "inputs": _values(_("Arguments of calls, plans of chains, questions of agent runs"), SnapshotKind.INPUT),
    "outputs": _values(_("Results of calls"), SnapshotKind.OUTPUT, SnapshotKind.REPLAY),
    "errors": _values(_("Texts of errors"), SnapshotKind.ERROR),
    "logs": _values(_("What tools printed"), SnapshotKind.LOGS, SnapshotKind.LIVE),
    "segments": _values(_("Progress of long runs"), SnapshotKind.SEGMENT),
    "artifacts": RetentionClass(_("Artifacts"), remove_old_artifacts),
    "files": RetentionClass(_("Files that calls have written"), remove_old_files),
}
