"""What is kept as evidence?"""

from evidence.models.facts import AppendOnlyError, AppendOnlyQuerySet, Fact, Pending
from evidence.models.snapshots import Snapshot, SnapshotKind

__all__ = ["AppendOnlyError", "AppendOnlyQuerySet", "Fact", "Pending", "Snapshot", "SnapshotKind"]
