"""What is kept as evidence?"""

from evidence.models.erasures import Erasure, ErasureState, Retention
from evidence.models.facts import AppendOnlyError, AppendOnlyQuerySet, Fact, Pending
from evidence.models.keys import SubjectKey, TenantKey
from evidence.models.log import GLOBAL_LOG, Checkpoint, Log, LogKey, Seal, Tile
from evidence.models.search import Indexed, IndexBlock, Posting, SavedSearch
from evidence.models.snapshots import Snapshot, SnapshotKind

__all__ = [
    "GLOBAL_LOG",
    "AppendOnlyError",
    "AppendOnlyQuerySet",
    "Checkpoint",
    "Erasure",
    "ErasureState",
    "Fact",
    "IndexBlock",
    "Indexed",
    "Log",
    "LogKey",
    "Pending",
    "Posting",
    "SavedSearch",
    "Retention",
    "Seal",
    "Snapshot",
    "SnapshotKind",
    "SubjectKey",
    "TenantKey",
    "Tile",
]
