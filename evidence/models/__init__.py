"""What is kept as evidence?"""

from evidence.models.facts import AppendOnlyError, AppendOnlyQuerySet, Fact, Pending
from evidence.models.log import GLOBAL_LOG, Checkpoint, Log, LogKey, Seal, Tile
from evidence.models.snapshots import Snapshot, SnapshotKind

__all__ = [
    "GLOBAL_LOG",
    "AppendOnlyError",
    "AppendOnlyQuerySet",
    "Checkpoint",
    "Fact",
    "Log",
    "LogKey",
    "Pending",
    "Seal",
    "Snapshot",
    "SnapshotKind",
    "Tile",
]
