"""Rows beside the tree: whether pairs, facts in no log, waiting entries and stored values are right."""

from __future__ import annotations

import contextlib
import json
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from django.db.models import Exists, OuterRef

from evidence import services as evidence
from evidence.integrity.findings import FindingCode, IntegrityFinding
from evidence.integrity.signals import which_are_open
from evidence.kinds import BEGINS, ENDS, PAIR
from evidence.models import Fact, Pending, Seal, Snapshot
from evidence.problems import ArchivedFactUnavailable, KeyUnavailable, ValuesErased
from evidence.verify.facts import iter_commitments
from kernel.ids import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from evidence.archives.leaves import ArchivedBundles

WINDOW = 5_000
SAMPLED = 20
END_OF = dict(zip(BEGINS, ENDS, strict=True))


def broken_pairs(tenant_id: UUID, pairs: dict[UUID, list[tuple[str, int]]]) -> list[IntegrityFinding]:
    """Of the calls of which a piece has a Begin or an End: exactly one of both, of the same kind; or a Begin and still open."""
    kinds = _kinds(tenant_id, pairs)
    waiting = {id for id, found in kinds.items() if len(found) == 1 and found[0] in END_OF}
    still_open = _open(tenant_id, waiting)
    found = []
    for id, indexes in pairs.items():
        has = sorted(kinds.get(id, []), key=lambda kind: kind in ENDS)
        good = len(has) == 2 and has[1] == END_OF.get(has[0])  # type: ignore[call-overload]
        if not good and id not in still_open:
            last = max(index for _, index in indexes)
            found.append(IntegrityFinding(FindingCode.PAIR_BROKEN, last, f"{encode('inv', id)}: {', '.join(has)}"))
    return found


@dataclass(frozen=True, slots=True)
class Suspects:
    """Leaves of whose values one was found wrong, which no look has closed. ``listed``: those that are known."""

    listed: frozenset[int] = frozenset()
    all_listed: bool = True


def wrong_commitments(
    tenant_id: UUID, pairs: dict[UUID, list[tuple[str, int]]], suspects: Suspects, archive: ArchivedBundles
) -> Iterator[IntegrityFinding]:
    """Of some calls of a piece: whether the stored values are still those that their facts commit to, where the keys open them.

    Of suspects it is asked each time, for a look that has not asked it again has not refuted it; of all, when not all are listed.
    """
    places = {index for found in pairs.values() for _, index in found}
    chosen = random.sample(sorted(places), min(SAMPLED, len(places))) if suspects.all_listed else places
    asked = sorted(suspects.listed & places | set(chosen))
    for at in range(0, len(asked), SAMPLED):
        yield from _wrong_at(tenant_id, asked[at : at + SAMPLED], suspects, archive)


def _wrong_at(
    tenant_id: UUID, sample: list[int], suspects: Suspects, archive: ArchivedBundles
) -> list[IntegrityFinding]:
    seals = Seal.objects.filter(tenant_id=tenant_id, leaf_index__in=sample)
    said = {}
    for index, leaf in seals.values_list("leaf_index", "fact__leaf"):
        # What is no leaf any more is found by its hash, and of one that cannot be had the walk tells.
        with contextlib.suppress(ValueError, RecursionError, ArchivedFactUnavailable):
            for _, each in iter_commitments(json.loads(bytes(leaf) or archive.read_leaf(index))):
                said[decode("snp", each["snapshot"])] = (index, each["commit"])
    found = []
    for row in Snapshot.objects.filter(tenant_id=tenant_id, pk__in=said):
        index, commitment = said[row.pk]
        try:
            good = row.commitment == commitment == evidence.recompute_commitment(row)
        except ValuesErased:
            good = row.commitment == commitment
        except KeyUnavailable:  # of a suspect that is no answer
            good = row.commitment == commitment and index not in suspects.listed
        if not good:
            found.append(IntegrityFinding(FindingCode.COMMITMENT_WRONG, index, row.wire_id))
    return found


def _kinds(tenant_id: UUID, ids: Iterable[UUID]) -> dict[UUID, list[str]]:
    rows = Fact.objects.of_calls(*ids).filter(tenant_id=tenant_id, kind__in=[str(kind) for kind in PAIR])
    found: dict[UUID, list[str]] = defaultdict(list)
    for id, kind in rows.values_list("invocation_id", "kind"):
        found[id].append(kind)
    return found


def _open(tenant_id: UUID, ids: set[UUID]) -> set[UUID]:
    if not ids:
        return set()
    found: set[UUID] = set()
    for _, answer in which_are_open.send(sender=Fact, tenant_id=tenant_id, invocation_ids=ids):
        found |= cast("set[UUID]", answer)
    return found


def unlisted_facts(
    tenant_id: UUID, after: UUID | None, upto: UUID | None
) -> tuple[list[IntegrityFinding], UUID | None, bool]:
    """Facts after ``after`` that no log has and that do not wait for one, up to which fact was looked, and whether there are more."""
    rows = Fact.objects.filter(tenant_id=tenant_id).order_by("id")
    if after is not None:
        rows = rows.filter(id__gt=after)
    if upto is not None:
        rows = rows.filter(id__lte=upto)
    ids = list(rows.values_list("id", flat=True)[:WINDOW])
    if not ids:
        return [], after, False
    looked = Fact.objects.filter(tenant_id=tenant_id, id__gte=ids[0], id__lte=ids[-1])
    lost = looked.filter(
        ~Exists(Seal.objects.filter(pk=OuterRef("pk"))), ~Exists(Pending.objects.filter(pk=OuterRef("pk")))
    )
    found = [
        IntegrityFinding(FindingCode.FACT_UNLISTED, None, encode("fct", id)) for id in lost.values_list("id", flat=True)
    ]
    return found, ids[-1], len(ids) == WINDOW


def wrong_pending(tenant_id: UUID) -> list[IntegrityFinding]:
    """What waits must be there, be the tenant's, and not be sealed."""
    rows = Pending.objects.filter(tenant_id=tenant_id)
    facts = Fact.objects.filter(pk=OuterRef("pk"), tenant_id=tenant_id)
    wrong = rows.filter(Exists(Seal.objects.filter(pk=OuterRef("pk")))) | rows.exclude(Exists(facts))
    ids = list(wrong.values_list("pk", flat=True)[:100])
    return [IntegrityFinding(FindingCode.PENDING_WRONG, None, encode("fct", id)) for id in ids]
