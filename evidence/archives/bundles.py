"""Archived bundles: 256 leaves of a log that lie in the archive as one object, and how readers of this hub get them.

Who reads one old fact reads others of its time, so what was read is kept for a while. What a page needs is read at once, a few objects
beside each other: a store answers several as fast as one. Threads do that, which know nothing of the database.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from django.conf import settings

from evidence.archives.object_stores import OF_READERS, ArchiveUnavailable, open_store
from evidence.log.origins import log_name
from evidence.problems import ArchivedFactUnavailable
from evidence.verify.problems import MalformedEvidence
from evidence.verify.tiles import ENTRIES, TilePath, unpack_entries
from kernel.leases import note_progress

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from evidence.archives.object_stores import ObjectStore

AT_ONCE = 8  # of one reader
KEPT = 64  # bundles, of some 400 kB
KEPT_S = 300
SILENT_S = 10  # after a store did not answer: who reads is refused at once, for many wait for the same

Entries = list[bytes]


class BundlePlace(NamedTuple):
    """Which bundle of which log."""

    log: UUID
    n: int


class _KeptBundles:
    """What was read of one archive lately. Threads of a process share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, BundlePlace], tuple[float, Entries]] = OrderedDict()

    def get(self, url: str, place: BundlePlace) -> Entries | None:
        with self._lock:
            until, entries = self._kept.get((url, place), (0.0, None))
            return entries if time.monotonic() < until else None

    def keep(self, url: str, place: BundlePlace, entries: Entries) -> None:
        with self._lock:
            self._kept[url, place] = time.monotonic() + KEPT_S, entries
            self._kept.move_to_end((url, place))
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()


_kept = _KeptBundles()
_silent_until: dict[str, float] = {}
_first = threading.Lock()  # boto3 makes one client at a time


@lru_cache(maxsize=1)
def _open_archive(url: str, endpoint: str) -> ObjectStore:
    return open_store(url, endpoint=endpoint, patience=OF_READERS)


def forget_kept_bundles() -> None:
    """Somebody may put right what was read."""
    _kept.clear()


def forget_bundles() -> None:
    """What was read, and that the archive was silent."""
    forget_kept_bundles()
    _silent_until.clear()


def _read(place: BundlePlace) -> Entries | ArchivedFactUnavailable:
    """As it lies in the archive; no entries where it has no such bundle, or one that is none."""
    url, now = settings.TOOLHUB_ARCHIVE_URL, time.monotonic()
    if not url or now < _silent_until.get(url, now):
        return ArchivedFactUnavailable()
    name = f"{log_name(place.log)}/{TilePath(ENTRIES, place.n)}"
    try:
        with _first:
            store = _open_archive(url, settings.TOOLHUB_ARCHIVE_ENDPOINT)
        return unpack_entries(store.read(name) or b"")
    except ArchiveUnavailable as error:
        _silent_until[url] = time.monotonic() + SILENT_S
        problem = ArchivedFactUnavailable()
        problem.__cause__ = error
        return problem
    except MalformedEvidence:
        return []


def read_bundles(places: Iterable[BundlePlace]) -> dict[BundlePlace, Entries | ArchivedFactUnavailable]:
    """As they lie in the archive now, or why one cannot be had."""
    asked = list(dict.fromkeys(places))
    if len(asked) < 2:
        return _note_each(asked, map(_read, asked))
    with ThreadPoolExecutor(min(AT_ONCE, len(asked)), thread_name_prefix="archive") as pool:
        return _note_each(asked, pool.map(_read, asked))


def _note_each(
    asked: Iterable[BundlePlace], answers: Iterable[Entries | ArchivedFactUnavailable]
) -> dict[BundlePlace, Entries | ArchivedFactUnavailable]:
    """In the thread of who waits for them: it may have a lease, which stays its own while they come."""
    found = {}
    for place, answer in zip(asked, answers, strict=True):
        note_progress()
        found[place] = answer
    return found


def get_bundles(places: Iterable[BundlePlace]) -> dict[BundlePlace, Entries | ArchivedFactUnavailable]:
    """The same, which may be some minutes old."""
    url, asked = settings.TOOLHUB_ARCHIVE_URL, set(places)
    found: dict[BundlePlace, Entries | ArchivedFactUnavailable] = {}
    for place in asked:
        if (entries := _kept.get(url, place)) is not None:
            found[place] = entries
    for place, read in read_bundles(sorted(asked - found.keys())).items():
        found[place] = read
        if not isinstance(read, ArchivedFactUnavailable):
            _kept.keep(url, place, read)
    return found
