"""Archived leaves: what facts say whose month has left the database.

The rows of such a month are there, with an empty leaf where that is in the archive alone (:mod:`evidence.months.drops`). A leaf comes
with the 255 others of its bundle (:mod:`evidence.archives.bundles`). Whoever reads one gets what was sealed or nothing; only the
verifier takes what lies there as it is (:class:`ArchivedBundles`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from evidence.archives.bundles import (
    BundlePlace,
    Entries,
    forget_kept_bundles,
    get_bundles,
    read_bundles,
)
from evidence.kinds import Kind
from evidence.leaves.hub import ArchivedLog
from evidence.log.origins import log_name
from evidence.models import Fact, Seal, read_leaf
from evidence.problems import ArchivedFactLost, ArchivedFactUnavailable
from evidence.verify.merkle import TILE_WIDTH, leaf_hash
from kernel.database.connections import release_connection
from kernel.database.tenancy import NO_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID


def _take_leaf(read: Entries | ArchivedFactUnavailable, index: int, hash: bytes) -> bytes:
    """Out of its bundle, as it was sealed."""
    if isinstance(read, ArchivedFactUnavailable):
        raise read
    place = index % TILE_WIDTH
    leaf = read[place] if place < len(read) else b""
    if not leaf or leaf_hash(leaf) != hash:
        raise ArchivedFactLost
    return leaf


def read_archived_leaf(tenant_id: UUID, index: int, hash: bytes) -> bytes:
    """What was sealed. ``hash``: what the hub has of it; another leaf is not had from the archive. Raises
    :class:`ArchivedFactUnavailable`, and :class:`ArchivedFactLost` where the archive has no such leaf.
    """
    place = BundlePlace(tenant_id, index // TILE_WIDTH)
    try:
        return _take_leaf(get_bundles([place])[place], index, hash)
    except ArchivedFactLost:
        forget_kept_bundles()
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
    """Those of all facts that have none in the database, at once. Raises for the first that cannot be had."""
    try:
        for fact, found in _find_leaves(facts):
            if isinstance(found, ArchivedFactUnavailable):
                raise found
            fact.leaf = found
    except ArchivedFactLost:
        forget_kept_bundles()
        raise


def load_leaves_at_hand(facts: Iterable[Fact]) -> None:
    """As :func:`load_leaves`, for who shows columns too: a fact whose leaf cannot be had says why not (``leaf_problem``)."""
    lost = False
    for fact, found in _find_leaves(facts):
        if isinstance(found, ArchivedFactUnavailable):
            fact.leaf_problem = found
            lost = lost or isinstance(found, ArchivedFactLost)
        else:
            fact.leaf = found
    if lost:
        forget_kept_bundles()


def _find_leaves(facts: Iterable[Fact]) -> Iterable[tuple[Fact, bytes | ArchivedFactUnavailable]]:
    """Of the facts that have no leaf in the database, in the order of the log: the leaf, or why it cannot be had."""
    located = _locate_leaves(facts)
    places = {fact.pk: BundlePlace(fact.tenant_id, index // TILE_WIDTH) for fact, index in located if index is not None}
    bundles = get_bundles(places.values())
    for fact, index in located:
        if index is None:  # only what is sealed is archived
            yield fact, ArchivedFactLost()
            continue
        try:
            yield fact, _take_leaf(bundles[places[fact.pk]], index, bytes(fact.leaf_hash))
        except ArchivedFactUnavailable as problem:
            yield fact, problem


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


class BundlesLacking(Exception):
    """A look at a log needs bundles that were not read before it."""


class ArchivedBundles:
    """What the archive has of a log now, as it lies there: for who verifies. Each bundle is read once, and kept as long as this is.

    Nothing is read while somebody looks, who has a snapshot of the database open: that is given up for what is lacking
    (:class:`BundlesLacking`) and taken anew once :meth:`read_lacking` has it.
    """

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id
        self._archived: int | None = None
        self._read: dict[int, Entries | ArchivedFactUnavailable] = {}
        self._lacking: set[int] = set()

    def read_leaf(self, index: int) -> bytes:
        """Empty: neither the database nor the archive has it, or it never was to leave the database. Raises
        :class:`ArchivedFactUnavailable` when the archive does not answer, or was not asked yet.
        """
        if self._archived is None:
            self._archived = count_archived_leaves(self._tenant_id)
        if index >= self._archived:
            return b""
        n, place = divmod(index, TILE_WIDTH)
        if n not in self._read:
            self._lacking.add(n)
            raise ArchivedFactUnavailable
        leaves = self._read[n]
        if isinstance(leaves, ArchivedFactUnavailable):
            raise leaves
        return leaves[place] if place < len(leaves) else b""

    def check_whole(self) -> None:
        """Raises :class:`BundlesLacking` when anything was asked for that was not read yet."""
        if self._lacking:
            raise BundlesLacking

    def read_lacking(self) -> None:
        """Outside of any snapshot, and with no connection: a store may take its time."""
        release_connection()
        read = read_bundles(BundlePlace(self._tenant_id, n) for n in sorted(self._lacking))
        self._read |= {place.n: entries for place, entries in read.items()}
        self._lacking.clear()
        # The next snapshot may lack what was archived and dropped meanwhile: it counts for itself.
        self._archived = None
