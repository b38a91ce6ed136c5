"""Archived leaves: what facts say whose month has left the database.

The rows of such a month are there, with an empty leaf where that is in the archive alone (:mod:`evidence.months.drops`). A leaf comes
with the 255 others of its bundle, which are kept for a while: who reads one old fact reads others of its time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings

from evidence.archives.object_stores import ArchiveUnavailable, open_store
from evidence.log.origins import log_name
from evidence.models import Fact, Seal
from evidence.problems import ArchivedFactUnavailable
from evidence.verify.merkle import TILE_WIDTH
from evidence.verify.problems import MalformedEvidence
from evidence.verify.tiles import ENTRIES, TilePath, unpack_entries

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from evidence.archives.object_stores import ObjectStore

KEPT = 64  # bundles, of some 400 kB


@lru_cache(maxsize=1)
def _open_archive(url: str, endpoint: str) -> ObjectStore:
    return open_store(url, endpoint=endpoint)


@lru_cache(maxsize=KEPT)
def _read_bundle(url: str, endpoint: str, tenant_id: UUID, n: int) -> list[bytes]:
    name = f"{log_name(tenant_id)}/{TilePath(ENTRIES, n)}"
    try:
        found = _open_archive(url, endpoint).read(name)
        leaves = unpack_entries(found) if found is not None else []
    except (ArchiveUnavailable, MalformedEvidence) as error:
        raise ArchivedFactUnavailable from error
    if len(leaves) != TILE_WIDTH:
        raise ArchivedFactUnavailable
    return leaves


def read_archived_leaf(tenant_id: UUID, index: int) -> bytes:
    """As it lies in the archive. Whether it is what was sealed its hash says, which the hub has."""
    if not settings.TOOLHUB_ARCHIVE_URL:
        raise ArchivedFactUnavailable
    n, place = divmod(index, TILE_WIDTH)
    return _read_bundle(settings.TOOLHUB_ARCHIVE_URL, settings.TOOLHUB_ARCHIVE_ENDPOINT, tenant_id, n)[place]


def restore_leaf(leaf: bytes | memoryview, tenant_id: UUID, index: int | None) -> bytes:
    """A leaf as it is stored, or from the archive. ``index``: which of its log it is."""
    if leaf:
        return bytes(leaf)
    if index is None:  # only what is sealed is archived
        raise ArchivedFactUnavailable
    return read_archived_leaf(tenant_id, index)


def load_leaf(fact: Fact) -> bytes:
    """The leaf of one fact that has none in the database."""
    load_leaves([fact])
    return bytes(fact.leaf)


def load_leaves(facts: Iterable[Fact]) -> None:
    """Those of all facts that have none in the database, at once."""
    lacking = {fact.pk: fact for fact in facts if fact.has_archived_leaf}
    seals = Seal.objects.filter(pk__in=lacking).order_by("leaf_index")
    found = dict(seals.values_list("pk", "leaf_index")) if lacking else {}
    for pk, index in found.items():
        lacking[pk].leaf = read_archived_leaf(lacking[pk].tenant_id, index)
    if len(found) < len(lacking):
        raise ArchivedFactUnavailable
