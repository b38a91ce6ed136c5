"""Leaves of a tenant's files and of what calls leave."""

from __future__ import annotations

from typing import Annotated

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, MaybeWritten, leaf_data


@leaf_data(Kind.FILE_STORED)
class FileUpload(LeafData):
    """That a file was stored."""

    bytes: Annotated[int, "its size"]
    content: Annotated[str, "keyed hash of the content"]
    new: Annotated[bool, "false: it replaces one"]


@leaf_data(Kind.FILE_READ, Kind.FILE_REMOVED, Kind.ARTIFACT_REMOVED)
class FileContent(LeafData):
    """Which content was read or removed."""

    content: Annotated[str, "keyed hash of the content"]


@leaf_data(Kind.ARTIFACT_READ)
class ReadArtifact(FileContent):
    """Who has got an artifact, and how."""

    via: Annotated[str, "`key`, `link`, `console`; `model` or `service`: it was read for one"]
    reason: MaybeWritten = None
