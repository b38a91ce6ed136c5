"""Leaves of imports: what was brought from where, and who chose another effect than the source proposes."""

from __future__ import annotations

from typing import Annotated, Any

from evidence.kinds import Kind
from evidence.leaves.base import LeafData, Written, leaf_data


@leaf_data(Kind.IMPORT_READ)
class ReadSource(LeafData):
    """That a document was uploaded, or that a server has listed its tools."""

    source: Annotated[str, "`openapi`, `remote` or `package`"]
    group: Annotated[str, "what its tools stand under"]
    name: Annotated[str, "title of the document, address of the server, or package"]
    digest: Annotated[str, "of the document's bytes, or of the list"]
    offered: Annotated[int, "how many operations or tools it has"]


@leaf_data(Kind.IMPORT_SUBMITTED)
class SubmittedImport(LeafData):
    """That drafts became versions."""

    group: Annotated[str, "what they stand under"]
    digest: Annotated[str, "of the document or list that they were made of"]
    versions: Annotated[list[Any], "tool, version and id of each"]


@leaf_data(Kind.IMPORT_EFFECT_CHOSEN)
class ChosenEffect(LeafData):
    """That a person has given a tool another effect than its source proposes."""

    version: Annotated[str, "number of the version"]
    id: Annotated[str, "of the version"]
    proposed: Annotated[str, "effect that follows from the method, or that its server claims"]
    chosen: Annotated[str, "effect in the manifest"]
    chosen_by: Annotated[str, "id of the person who chose it; the actor is who submitted it"]
    reason: Written


@leaf_data(Kind.IMPORT_REMOVED)
class RemovedImport(LeafData):
    """That a source and its drafts were forgotten. Versions that were made of it stay."""

    group: Annotated[str, "what its tools stand under"]
    digest: Annotated[str, "of the document or list; empty: it was not read"]
    drafts: Annotated[int, "how many were not submitted"]
