"""Archived leaves: what facts say whose month has left the database.

The rows of such a month are there, with an empty leaf where that is in the archive alone (:mod:`evidence.months.drops`). A leaf comes
with the 255 others of its bundle, which are kept for a while: who reads one old fact reads others of its time. Whoever reads one gets
what was sealed or nothing; only the verifier takes what lies there as it is (:class:`ArchivedBundles`).
"""

from __future__ import annotations

import time
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings

from evidence.archives.object_stores import OF_READERS, ArchiveUnavailable, open_store
from evidence.kinds import Kind
from evidence.leaves.hub import ArchivedLog
from evidence.log.origins import log_name
from evidence.models import Fact, Seal, read_leaf
from evidence.problems import ArchivedFactLost, ArchivedFactUnavailable
from evidence.verify.merkle import TILE_WIDTH, leaf_hash
from evidence.verify.problems import MalformedEvidence
from evidence.verify.tiles import ENTRIES, TilePath, unpack_entries
from kernel.database.tenancy import NO_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from evidence.archives.object_stores import ObjectStore

KEPT = 64  # bundles, of some 400 kB
KEPT_S = 300
SILENT_S = 10  # after a store did not answer: who reads is refused at once, for many wait for the same

_silent_until: dict[str, float] = {}


@lru_cache(maxsize=1)
def _open_archive(url: str, endpoint: str) -> ObjectStore:
    return open_store(url, endpoint=endpoint, patience=OF_READERS)


def forget_bundles() -> None:
    """What was read, and that the archive was silent."""
    _read_bundle.cache_clear()
    _silent_until.clear()


def _read_entries(tenant_id: UUID, n: int) -> list[bytes]:
    """As they lie in the archive; none where it has no such bundle, or one that is none. Raises :class:`ArchivedFactUnavailable`."""
    url, now = settings.TOOLHUB_ARCHIVE_URL, time.monotonic()
    if not url or now < _silent_until.get(url, now):
        raise ArchivedFactUnavailable
    name = f"{log_name(tenant_id)}/{TilePath(ENTRIES, n)}"
    try:
        return unpack_entries(_open_archive(url, settings.TOOLHUB_ARCHIVE_ENDPOINT).read(name) or b"")
    except ArchiveUnavailable as error:
        _silent_until[url] = time.monotonic() + SILENT_S
        raise ArchivedFactUnavailable from error
    except MalformedEvidence:
        return []


@lru_cache(maxsize=KEPT)
def _read_bundle(url: str, tenant_id: UUID, n: int, age: int) -> list[bytes]:
    """``url`` and ``age`` tell what is kept apart."""
    del url, age
    return _read_entries(tenant_id, n)


def _find_leaf(tenant_id: UUID, index: int, hash: bytes) -> bytes:
    n, place = divmod(index, TILE_WIDTH)
    leaves = _read_bundle(settings.TOOLHUB_ARCHIVE_URL, tenant_id, n, int(time.monotonic() // KEPT_S))
    leaf = leaves[place] if place < len(leaves) else b""
    if not leaf or leaf_hash(leaf) != hash:
        raise ArchivedFactLost
    return leaf


def read_archived_leaf(tenant_id: UUID, index: int, hash: bytes) -> bytes:
    """What was sealed. ``hash``: what the hub has of it; another leaf is not had from the archive. Raises
    :class:`ArchivedFactUnavailable`, and :class:`ArchivedFactLost` where the archive has no such leaf.
    """
    try:
        return _find_leaf(tenant_id, index, hash)
    except ArchivedFactLost:
        _read_bundle.cache_clear()  # somebody may put it right
        raise


def restore_leaf(leaf: bytes | memoryview, tenant_id: UUID, index: int | None, hash: bytes | memoryview) -> bytes:
    """A leaf as it is stored, or from the archive. ``index``: which of its log it is; ``hash``: what the hub has of it."""
    if leaf:
        return bytes(leaf)
    if index is None:  # only what is sealed is archived
        raise ArchivedFactLost
    return read_archived_leaf(tenant_id, index, bytes(hash))


def load_leaf(fact: Fact) -> bytes:
    """The leaf of one fact that has none in the database."""
    load_leaves([fact])
    return bytes(fact.leaf)


def load_leaves(facts: Iterable[Fact]) -> None:
    """Those of all facts that have none in the database, at once."""
    for fact, index in _locate_leaves(facts):
        fact.leaf = restore_leaf(b"", fact.tenant_id, index, fact.leaf_hash)


def load_leaves_at_hand(facts: Iterable[Fact]) -> None:
    """As :func:`load_leaves`, for who shows columns too: a fact whose leaf cannot be had says why not (``leaf_problem``)."""
    lost = False
    for fact, index in _locate_leaves(facts):
        try:
            if index is None:  # only what is sealed is archived
                raise ArchivedFactLost
            fact.leaf = _find_leaf(fact.tenant_id, index, bytes(fact.leaf_hash))
        except ArchivedFactUnavailable as problem:
            fact.leaf_problem = problem
            lost = lost or isinstance(problem, ArchivedFactLost)
    if lost:
        _read_bundle.cache_clear()  # somebody may put it right; once, for others of a bundle are read from what was kept


def _locate_leaves(facts: Iterable[Fact]) -> list[tuple[Fact, int | None]]:
    """The facts that have no leaf in the database, and which of its log each is, in that order; those that are not sealed last."""
    lacking = {fact.pk: fact for fact in facts if fact.has_archived_leaf}
    if not lacking:
        return []
    found = dict(Seal.objects.filter(pk__in=lacking).order_by("leaf_index").values_list("pk", "leaf_index"))
    unsealed = [(fact, None) for pk, fact in lacking.items() if pk not in found]
    return [*((lacking[pk], index) for pk, index in found.items()), *unsealed]


def count_archived_leaves(tenant_id: UUID) -> int:
    """How many of a log may be in the archive alone: full bundles of what the hub's own log says was archived. Acts hub-wide."""
    told = Fact.objects.filter(
        tenant_id=NO_TENANT, kind=Kind.LOG_ARCHIVED, subject=f"log:{log_name(tenant_id)}", seal__isnull=False
    )
    for leaf in told.order_by("-id").values_list("leaf", flat=True).iterator():
        with suppress(ValueError, KeyError, TypeError, AttributeError):  # of what is no leaf any more its hash tells
            return ArchivedLog.from_data(read_leaf(bytes(leaf)).get("data")).stop // TILE_WIDTH * TILE_WIDTH
    return 0


class ArchivedBundles:
    """What the archive has of a log now, as it lies there: for who verifies. Each bundle is read once, and kept as long as this is."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id
        self._archived: int | None = None
        self._read: dict[int, list[bytes]] = {}

    def read_leaf(self, index: int) -> bytes:
        """Empty: neither the database nor the archive has it, or it never was to leave the database. Raises
        :class:`ArchivedFactUnavailable` when the archive does not answer.
        """
        if self._archived is None:
            self._archived = count_archived_leaves(self._tenant_id)
        if index >= self._archived:
            return b""
        n, place = divmod(index, TILE_WIDTH)
        if n not in self._read:
            self._read[n] = _read_entries(self._tenant_id, n)
        leaves = self._read[n]
        return leaves[place] if place < len(leaves) else b""
