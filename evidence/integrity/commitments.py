"""Commitments of leaves: whether each stored value that a fact commits to is there, or a fact says what took it away.

Asked of all commitments of a piece, by their ids alone; what is gone is looked at closer. Old values go by retention, whose facts say
until when and which; a person's go with their key, which leaves their calls marked; what people wrote may name a person who is
erased, and facts of the erasure name each text that it took. Erasures of hubs before have not named them: of what was written until
such a one was finished, any may be gone.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from evidence.erasures.holders import CLASSES
from evidence.integrity import column_types
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.signals import which_are_erased
from evidence.kinds import FORGETTING, Kind
from evidence.leaves.custody import AppliedRetention, AskedErasure, ErasedWords
from evidence.models import Fact, Seal, Snapshot, SnapshotKind, read_leaf
from evidence.problems import ArchivedFactUnavailable
from evidence.verify.facts import iter_commitments
from kernel.database.connections import database_time
from kernel.ids import decode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from evidence.archives.leaves import ArchivedBundles

AT_ONCE = 2_000
NO_LEAF = b"{}"
SLACK = timedelta(minutes=1)  # between a value and the fact that commits to it
BEGINNING, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)
# Facts have their ids before they commit, on hosts whose clocks differ: so far back they are read again.
LATE = timedelta(hours=1)
# By the name under which a leaf commits to it.
KIND_OF = {
    "input": SnapshotKind.INPUT,
    "plan": SnapshotKind.INPUT,
    "output": SnapshotKind.OUTPUT,
    "error": SnapshotKind.ERROR,
    "logs": SnapshotKind.LOGS,
    "said": SnapshotKind.SEGMENT,
    "words": SnapshotKind.WORDS,
}


def missing_values(tenant_id: UUID, committed: Mapping[str, int], archive: ArchivedBundles) -> list[IntegrityFinding]:
    """``committed``: ids of stored values, with the leaf that commits to each."""
    gone = _gone(tenant_id, committed)
    if not gone:
        return []
    places = sorted({committed[id] for id in gone})
    facts: dict[int, Fact] = {}
    for at in range(0, len(places), AT_ONCE):
        seals = Seal.objects.filter(tenant_id=tenant_id, leaf_index__in=places[at : at + AT_ONCE])
        facts |= {seal.leaf_index: seal.fact for seal in seals.select_related("fact")}
    for index, fact in facts.items():
        if fact.has_archived_leaf:
            fact.leaf = NO_LEAF  # one of two in this place, of which the other was read
            with contextlib.suppress(ArchivedFactUnavailable):
                fact.leaf = archive.read_leaf(index) or NO_LEAF
    erased = _erased(tenant_id, {owner for fact in facts.values() if (owner := _owner(fact))})
    forgotten = _forgotten(tenant_id)
    found = []
    for id in sorted(gone, key=lambda each: (committed[each], each)):
        fact = facts[committed[id]]
        names = (name for name, said in iter_commitments(fact.content.get("data", {})) if said["snapshot"] == id)
        kind = next(map(KIND_OF.get, names), None)
        if not (forgotten.excuses(id, kind, fact.occurred_at) or _owner(fact) in erased):
            found.append(IntegrityFinding(FindingCode.COMMITMENT_MISSING, committed[id], id))
    return found


def mistyped_values(tenant_id: UUID, committed: Mapping[str, int]) -> list[IntegrityFinding]:
    """Those that are there, and hold another type than they have in one of their columns, each at the leaf that commits to it."""
    ids, found = list(committed), []
    for at in range(0, len(ids), AT_ONCE):
        mistyped = column_types.of_values(tenant_id, [decode("snp", id) for id in ids[at : at + AT_ONCE]])
        found += [
            IntegrityFinding(FindingCode.ROW_TYPE, committed[id], f"{id}: {names}") for id, names in mistyped.items()
        ]
    return found


def _gone(tenant_id: UUID, committed: Mapping[str, int]) -> set[str]:
    ids = list(committed)
    gone: set[str] = set()
    for at in range(0, len(ids), AT_ONCE):
        asked = {decode("snp", id): id for id in ids[at : at + AT_ONCE]}
        there = Snapshot.objects.filter(tenant_id=tenant_id, pk__in=asked).values_list("pk", flat=True)
        gone |= {asked[pk] for pk in asked.keys() - set(there)}
    return gone


def _owner(fact: Fact) -> UUID | None:
    """The call, the chain or the agent run whose values they are."""
    if fact.invocation_id is not None:
        return fact.invocation_id
    for prefix in ("chn", "run"):
        try:
            return decode(prefix, fact.subject)
        except ValueError:
            continue
    return None


def _erased(tenant_id: UUID, ids: set[UUID]) -> set[UUID]:
    found: set[UUID] = set()
    for _, answer in which_are_erased.send(sender=Fact, tenant_id=tenant_id, ids=ids):
        found |= cast("set[UUID]", answer)
    return found


@dataclass(slots=True)
class RecordedErasures:
    """What a tenant's facts say of values that went. ``until``: by age, of each kind."""

    until: dict[SnapshotKind, datetime] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)  # ids of texts that erasures took
    unnamed: set[str] = field(default_factory=set)  # erasures that have not named theirs
    finished: dict[str, datetime] = field(default_factory=dict)  # erasures
    newest: UUID | None = None  # of the facts that were read

    def excuses(self, id: str, kind: SnapshotKind | None, at: datetime) -> bool:
        """Whether this value of that kind, committed to at that time, may be gone."""
        if kind in self.until and at < self.until[kind] + SLACK:
            return True
        unnamed = (self.finished.get(each, LAST) for each in self.unnamed)
        return kind == SnapshotKind.WORDS and (id in self.words or any(at < until + SLACK for until in unnamed))

    def take(self, leaf: Any) -> None:
        """One fact more. Of what somebody has changed so that it cannot be read, nothing is taken: its hash tells of it."""
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError, OverflowError):
            said = read_leaf(bytes(leaf))
            id, at, kind, about = decode("fct", said["id"]), _time(said["at"]), said["kind"], str(said["subject"])
            data = said.get("data")
            if kind == Kind.RETENTION_APPLIED:
                applied = AppliedRetention.from_data(data)
                until = _time(applied.until)
                for each in CLASSES[applied.class_].kinds:
                    self.until[each] = max(self.until.get(each, BEGINNING), until)
            elif kind == Kind.WORDS_ERASED:
                self.words.update(map(str, ErasedWords.from_data(data).snapshots))
            elif kind in FORGETTING:
                if kind == Kind.ERASURE_FINISHED:
                    self.finished[about] = at
                if AskedErasure.from_data(data).names_words is not True:
                    self.unnamed.add(about)
            self.newest = max(self.newest or id, id)


def _time(said: str) -> datetime:
    return min(datetime.fromisoformat(said).astimezone(UTC), LAST)


# By tenant. Facts stay, so of those that were read only the newest are read again.
_read: dict[UUID, RecordedErasures] = {}


def _forgotten(tenant_id: UUID) -> RecordedErasures:
    found = _read.setdefault(tenant_id, RecordedErasures())
    rows = Fact.objects.filter(tenant_id=tenant_id, kind__in=[str(kind) for kind in FORGETTING])
    if found.newest is not None:
        ms = min(found.newest.int >> 80, int(database_time().timestamp() * 1000)) - LATE // timedelta(milliseconds=1)
        rows = rows.filter(id__gte=type(found.newest)(int=ms << 80))
    for leaf in rows.values_list("leaf", flat=True).iterator():
        found.take(leaf)
    return found
