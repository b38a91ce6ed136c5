"""Commitments of leaves: is each stored value there that a fact commits to, or does a fact say what has taken it away?

Asked of all commitments of a piece, by their ids alone; what is gone is looked at closer. Old values go by retention, whose facts say
until when and which; a person's go with their key, which leaves their calls marked; what people wrote may name a person who is
erased, so of these it counts that the tenant has erased somebody since.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from evidence.checking.findings import Finding, Wrong
from evidence.checking.signals import which_are_erased
from evidence.holders import CLASSES
from evidence.kinds import FORGETTING, Kind
from evidence.models import Fact, Seal, Snapshot, SnapshotKind
from toolhub.kernel.ids import decode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from uuid import UUID

AT_ONCE = 2_000
SLACK = timedelta(minutes=1)  # between a value and the fact that commits to it
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
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


def missing_values(tenant_id: UUID, committed: Mapping[str, int]) -> list[Finding]:
    """``committed``: ids of stored values, with the leaf that commits to each."""
    gone = _gone(tenant_id, committed)
    if not gone:
        return []
    places = sorted({committed[id] for id in gone})
    facts: dict[int, Fact] = {}
    for at in range(0, len(places), AT_ONCE):
        seals = Seal.objects.filter(tenant_id=tenant_id, leaf_index__in=places[at : at + AT_ONCE])
        facts |= {seal.leaf_index: seal.fact for seal in seals.select_related("fact")}
    erased = _erased(tenant_id, {owner for fact in facts.values() if (owner := _owner(fact))})
    until, somebody = _forgotten(tenant_id)
    found = []
    for id in sorted(gone, key=lambda each: (committed[each], each)):
        fact = facts[committed[id]]
        kind = next((KIND_OF.get(name) for name, said in _named(fact.said.get("data", {})) if said == id), None)
        by_age = kind is not None and fact.occurred_at < until[kind] + SLACK
        by_name = kind == SnapshotKind.WORDS and fact.occurred_at < somebody
        if not (by_age or by_name or _owner(fact) in erased):
            found.append(Finding(Wrong.COMMITMENT_MISSING, committed[id], id))
    return found


def _gone(tenant_id: UUID, committed: Mapping[str, int]) -> set[str]:
    ids = list(committed)
    gone: set[str] = set()
    for at in range(0, len(ids), AT_ONCE):
        asked = {decode("snp", id): id for id in ids[at : at + AT_ONCE]}
        there = Snapshot.objects.filter(tenant_id=tenant_id, pk__in=asked).values_list("pk", flat=True)
        gone |= {asked[pk] for pk in asked.keys() - set(there)}
    return gone


def _named(said: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Each commitment in what a leaf says: the name that it has there, and the id of the value."""
    if isinstance(said, dict):
        if isinstance(said.get("snapshot"), str) and "commit" in said:
            yield name, said["snapshot"]
        for key, each in said.items():
            yield from _named(each, key)
    elif isinstance(said, list):
        for each in said:
            yield from _named(each, name)


def _owner(fact: Fact) -> UUID | None:
    """The call or the chain whose values they are."""
    if fact.invocation_id is not None:
        return fact.invocation_id
    try:
        return decode("chn", fact.subject)
    except ValueError:
        return None


def _erased(tenant_id: UUID, ids: set[UUID]) -> set[UUID]:
    found: set[UUID] = set()
    for _, answer in which_are_erased.send(sender=Fact, tenant_id=tenant_id, ids=ids):
        found |= cast("set[UUID]", answer)
    return found


def _forgotten(tenant_id: UUID) -> tuple[dict[SnapshotKind, datetime], datetime]:
    """Until when values of each kind have gone by age, and when somebody was erased the last time."""
    until: dict[SnapshotKind, datetime] = defaultdict(lambda: BEGINNING - SLACK)
    somebody = BEGINNING
    for fact in Fact.objects.filter(tenant_id=tenant_id, kind__in=[str(kind) for kind in FORGETTING]).order_by("id"):
        said = fact.said.get("data", {})
        if fact.kind == Kind.ERASURE_ASKED:
            somebody = max(somebody, fact.occurred_at)
        elif said.get("class") in CLASSES:
            for kind in CLASSES[said["class"]].kinds:
                until[kind] = max(until[kind], datetime.fromisoformat(said["until"]))
    return until, somebody
