"""Leaves of the hub itself: its keys, its anchors and its configuration."""

from __future__ import annotations

from typing import Annotated, Any

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, Written, leaf_data


@leaf_data(Kind.LOG_KEY_ADDED, Kind.LOG_KEY_RETIRED)
class SigningKey(LeafData):
    """Which key signs logs, or does so no more."""

    key: Annotated[str, "its name"]
    log: Annotated[str, "public half for checkpoints, Base64"]
    clock: Annotated[str, "public half for cosignatures with a time, Base64"]


@leaf_data(Kind.LOG_ARCHIVED)
class ArchivedLog(LeafData):
    """That leaves of a log, the subject, are in an archive, were read back from there and fit its checkpoint."""

    place: Annotated[str, "where the archive is"]
    start: Annotated[int, "the first leaf"]
    stop: Annotated[int, "the leaf after the last, which is the checkpoint's size"]
    objects: Annotated[int, "how many were written"]
    digest: Annotated[str, "of their list: a line `sha256  path` each"]


@leaf_data(Kind.MASTER_KEYS_ROTATED)
class RotatedMasterKey(LeafData):
    """That stored values are under another master key."""

    key: Annotated[str, "its name"]
    rewrapped: Annotated[dict[str, int], "how many keys of what"]


@leaf_data(Kind.ANCHOR_REFUSED)
class RefusedAnchor(LeafData):
    """That an anchor does not agree with the log."""

    said: Annotated[str, "what stands against it"]


@leaf_data(Kind.ANCHOR_AGREED)
class AgreedAnchor(LeafData):
    """That an anchor agrees with the log again."""

    size: Annotated[int, "of the log"]


@leaf_data(Kind.CONFIGURATION_APPLIED)
class AppliedDocument(LeafData):
    """That a tenant was made as a document says."""

    document: Annotated[str, "digest of the document"]
    plan: Annotated[str, "digest of the changes"]
    counts: Annotated[dict[str, Any], "changes by section"]
    prune: Annotated[list[str], "sections in which what the document does not name was removed"]
    reason: Written


@leaf_data(Kind.CONFIGURATION_EXPORTED)
class ExportedConfiguration(LeafData):
    """That somebody has got a tenant's configuration as a document."""

    document: Annotated[str, "digest of the document"]
    counts: Annotated[dict[str, int], "entries by section"]
