"""Which classes of values can a tenant set a time for? Says so to evidence when the app is loaded."""

from __future__ import annotations

from functools import partial

from django.utils.translation import gettext_noop as _

from evidence.holders import AFTERWARDS, CLASSES, HOLDERS, Kept
from evidence.models import SnapshotKind
from invocations.erasing import Calls, Replays, forget_hashes, remove_old_artifacts, remove_old_files, remove_old_values

HOLDERS += [Calls(), Replays()]
AFTERWARDS.append(forget_hashes)
CLASSES |= {
    "inputs": Kept(_("Arguments of calls, plans of chains"), partial(remove_old_values, (SnapshotKind.INPUT,))),
    "outputs": Kept(_("Results of calls"), partial(remove_old_values, (SnapshotKind.OUTPUT, SnapshotKind.REPLAY))),
    "errors": Kept(_("Texts of errors"), partial(remove_old_values, (SnapshotKind.ERROR,))),
    "logs": Kept(_("What tools printed"), partial(remove_old_values, (SnapshotKind.LOGS, SnapshotKind.LIVE))),
    "segments": Kept(_("What long runs said meanwhile"), partial(remove_old_values, (SnapshotKind.SEGMENT,))),
    "artifacts": Kept(_("Artifacts"), remove_old_artifacts),
    "files": Kept(_("Files that calls have written"), remove_old_files),
}
