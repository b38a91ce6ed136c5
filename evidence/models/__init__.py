"""Models of evidence: what is kept."""

from evidence.models.anchors import Anchor, AnchorKind
from evidence.models.append_only import AppendOnlyError, AppendOnlyModel, AppendOnlyQuerySet
from evidence.models.erasures import Erasure, ErasureState, Retention
from evidence.models.exports import EXPORT_TRANSITIONS, ExportChunk, ExportFormat, ExportJob, ExportState
from evidence.models.facts import Fact, Pending, read_leaf
from evidence.models.keys import MasterKey, SubjectKey, TenantKey
from evidence.models.log import GLOBAL_LOG, Checkpoint, Log, LogKey, Seal, Tile
from evidence.models.search import IndexBlock, Indexed, Posting, PostingBucket, SavedSearch
from evidence.models.sinks import EventSink, SinkChannel, SinkMode, SinkSecret, SinkState
from evidence.models.snapshots import Snapshot, SnapshotKind
from evidence.models.verifications import Verification, VerificationState

__all__ = [
    "EXPORT_TRANSITIONS",
    "GLOBAL_LOG",
    "Anchor",
    "AnchorKind",
    "AppendOnlyError",
    "AppendOnlyModel",
    "AppendOnlyQuerySet",
    "Checkpoint",
    "Erasure",
    "ErasureState",
    "EventSink",
    "ExportChunk",
    "ExportFormat",
    "ExportJob",
    "ExportState",
    "Fact",
    "IndexBlock",
    "Indexed",
    "Log",
    "LogKey",
    "MasterKey",
    "Pending",
    "Posting",
    "PostingBucket",
    "Retention",
    "SavedSearch",
    "Seal",
    "SinkChannel",
    "SinkMode",
    "SinkSecret",
    "SinkState",
    "Snapshot",
    "SnapshotKind",
    "SubjectKey",
    "TenantKey",
    "Tile",
    "Verification",
    "VerificationState",
    "read_leaf",
]
