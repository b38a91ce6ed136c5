"""Replay batches: one piece of a replay, for each of the things that are gone through.

Reading ones take thousands of calls at a time, a run takes one. A piece is worked out without writing; ``write`` adds its rows in the
transaction that says how far the replay has come.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max

from access.policies.impact.previews import layers_under
from access.policies.impact.simulation import simulate_calls
from evidence import services as evidence
from evidence.archives.leaves import restore_leaf
from evidence.kinds import BEGINS, Kind
from evidence.leaves.call_begins import Begin
from evidence.leaves.replays import ComparedRun, ReplayedValues
from evidence.models import Fact, Snapshot, SnapshotKind
from invocations.models import Invocation
from invocations.replays import redecision
from invocations.replays.models import Replay, ReplayVerdict, Rerun, What
from invocations.replays.reconstruction import DIFFERS, EQUAL, choose_verdict, reconstruct_call
from invocations.replays.redecision import Redecider
from invocations.replays.rerun import RerunComparison, rerun_call
from invocations.trials.runs import keep_answer, run_trial
from invocations.value_keys import find_values_key, recheck_forgotten
from kernel.database.connections import one_snapshot
from kernel.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import QuerySet

CHUNK = {What.FACTS: 100, What.DECISIONS: 2_000, What.RUNS: 20}
MOST_NAMED = 200  # calls that differ, in the result
SIMULATED = 100_000  # calls that another policy is tried on


@dataclass(slots=True)
class ReplayBatch:
    """``write`` runs in the transaction that keeps the rest."""

    calls: int
    total: int
    after: UUID | None
    result: dict[str, Any]
    last: bool
    verdict: str = ""
    write: Callable[[], None] = lambda: None


def compute_lowest_id(moment: datetime) -> UUID:
    """The least UUIDv7 of a moment: ids sort by time, so a period is a range of them."""
    return UUID(int=max(int(moment.timestamp() * 1000), 0) << 80)


def list_begin_facts(row: Replay) -> QuerySet[Fact]:
    """The Begin facts of the period that are not done."""
    assert row.since is not None
    assert row.until is not None
    rows = Fact.objects.filter(
        tenant_id=row.tenant_id,
        kind__in=BEGINS,
        pk__gte=compute_lowest_id(row.since),
        pk__lt=compute_lowest_id(row.until),
    )
    if row.after is not None:
        rows = rows.filter(pk__gt=row.after)
    return (rows.filter(tool=row.tool) if row.tool else rows).order_by("pk")


def _next(row: Replay) -> tuple[list[Fact], int, bool]:
    """The next calls, how many there are in all, and whether these are the last."""
    total = row.total or list_begin_facts(row)[: row.most].count()
    size = min(CHUNK[What(row.what)], row.most - row.done)
    found = list(list_begin_facts(row)[:size]) if size > 0 else []
    return found, total, len(found) < size or row.done + len(found) >= row.most


def _counted(result: dict[str, Any], name: str, word: str) -> None:
    counts = result.setdefault(name, {})
    counts[word] = counts.get(word, 0) + 1


def _named(result: dict[str, Any], invocation_id: UUID | None, **said: Any) -> None:
    calls = result.setdefault("calls", [])
    if len(calls) < MOST_NAMED:
        calls.append({"invocation": str(invocation_id)} | said)


def _invocations(facts: list[Fact]) -> dict[UUID, Invocation]:
    rows = Invocation.objects.select_related("version__tool", "installation", "values_key__tenant_key")
    return rows.in_bulk([fact.invocation_id for fact in facts if fact.invocation_id])


def build_facts_batch(row: Replay) -> ReplayBatch:
    """In one snapshot: a call that ends or is retried after its row was read is not what its facts say by then."""
    with one_snapshot():
        return _facts_piece(row)


def _facts_piece(row: Replay) -> ReplayBatch:
    facts, total, last = _next(row)
    result, redecider = json.loads(json.dumps(row.result)), Redecider()
    rows = _invocations(facts)
    for fact in facts:
        assert fact.invocation_id is not None
        invocation = rows.get(fact.invocation_id)
        if invocation is None:
            _counted(result, "counts", DIFFERS)
            _named(result, fact.invocation_id, fields=["row"])
            continue
        findings = reconstruct_call(invocation, opened=bool(result.get("opens")), redecider=redecider)
        verdict = choose_verdict(findings)
        _counted(result, "counts", verdict)
        if verdict != EQUAL:
            wrong = [each.field for each in findings if each.verdict == DIFFERS]
            for name in wrong:
                _counted(result, "fields", name)
            _named(result, invocation.pk, fields=wrong)
    return ReplayBatch(len(facts), total, facts[-1].pk if facts else row.after, result, last)


def build_decisions_batch(row: Replay) -> ReplayBatch:
    if row.policy is not None:
        return _with_policy(row)
    facts, total, last = _next(row)
    result, redecider = json.loads(json.dumps(row.result)), Redecider()
    for fact in facts:
        again = redecider.look(fact.read_data(Begin), row.tenant_id)
        _counted(result, "counts", again.verdict)
        if again.verdict != redecision.SAME:
            _counted(result, "fields", again.why)
        if again.verdict == redecision.DIFFERS:
            _named(result, fact.invocation_id, fields=[again.why])
    return ReplayBatch(len(facts), total, facts[-1].pk if facts else row.after, result, last)


def _with_policy(row: Replay) -> ReplayBatch:
    """All of the period at once: to decide takes microseconds."""
    assert row.policy is not None
    rows = (
        list_begin_facts(row)
        .reverse()
        .values_list("invocation_id", "tenant_id", "leaf", "leaf_hash", "seal__leaf_index")
    )
    rows = rows[: min(row.most, SIMULATED)]
    done = simulate_calls(_begins(rows), layers_under(row.policy))
    counts = {str(change): count for change, count in done.counts.items()}
    result = row.result | {"simulation": done.to_json(), "policy": row.policy.label, "counts": counts}
    return ReplayBatch(done.calls + done.unusable, done.calls + done.unusable, None, result, last=True)


def _begins(rows: Any) -> Iterator[tuple[UUID, UUID, Any]]:
    for invocation_id, tenant_id, leaf, hash, index in rows.iterator(chunk_size=5_000):
        yield invocation_id, tenant_id, restore_leaf(leaf, tenant_id, index, hash)


def build_runs_batch(row: Replay) -> ReplayBatch:
    if row.invocation_id is not None:
        return _one_call(row)
    facts, total, last = _next(row)
    result = json.loads(json.dumps(row.result))
    rows, passed = _invocations(facts), 0
    for fact in facts:
        passed += 1
        assert fact.invocation_id is not None
        invocation = rows.get(fact.invocation_id)
        found = RerunComparison(ReplayVerdict.CANNOT, "no_values") if invocation is None else _rerun(row, invocation)
        _counted(result, "counts", found.verdict)
        if found.why:
            _counted(result, "whys", found.why)
        if invocation is None or found.why == "nothing_ran":
            continue  # counted, and not listed
        if found.state and found.state != invocation.state:
            _counted(result, "changes", f"{invocation.state} → {found.state}")
        last = last and fact is facts[-1]
        return ReplayBatch(passed, total, fact.pk, result, last, write=_writer(row, invocation, found))
    return ReplayBatch(passed, total, facts[-1].pk if facts else row.after, result, last)


def _rerun(row: Replay, invocation: Invocation) -> RerunComparison:
    return rerun_call(invocation, version=row.version, todays_image=row.todays_image)


def _one_call(row: Replay) -> ReplayBatch:
    assert row.invocation_id is not None
    rows = Invocation.objects.select_related("version__tool", "installation", "values_key__tenant_key")
    with one_snapshot():
        invocation = rows.get(pk=row.invocation_id)
        findings = reconstruct_call(invocation, opened=bool(row.result.get("opens")))
    found = _rerun(row, invocation)
    result = row.result | {
        "findings": [each.to_json() for each in findings],
        "facts": choose_verdict(findings),
        "counts": {str(found.verdict): 1},
    }
    write = _writer(row, invocation, found)
    return ReplayBatch(1, 1, None, result, last=True, verdict=str(found.verdict), write=write)


def _writer(row: Replay, invocation: Invocation, found: RerunComparison) -> Callable[[], None]:
    def write() -> None:
        _write(row, invocation, found)

    return write


def _write(row: Replay, invocation: Invocation, found: RerunComparison) -> None:
    """The row of the rerun, what it said, sealed beside the call's own values, and the fact of it."""
    Invocation.objects.select_for_update(of=("self",), no_key=True).only("pk").get(pk=invocation.pk)  # one number each
    number = (Rerun.objects.filter(invocation=invocation).aggregate(last=Max("number"))["last"] or 0) + 1
    version = row.version or invocation.version
    said = Rerun.objects.create(
        replay=row,
        invocation=invocation,
        number=number,
        verdict=found.verdict,
        why=found.why,
        notes=found.notes,
        version=version.version if version else "",
        image=found.image[:80],
        runs=found.runs,
        state=found.state,
        problem=found.problem,
        differences=found.differences,
        created_at=datetime.now(UTC),
    )
    values = None
    if found.values is not None:
        snapshot = _sealed(invocation, number, found.values)
        values = ReplayedValues.of(snapshot)
    evidence.record(
        kind=Kind.INVOCATION_RERUN,
        subject=invocation.wire_id,
        actor=Principal.system("replay", tenant_id=invocation.tenant_id),
        invocation_id=invocation.pk,
        tool=invocation.tool,
        outcome=found.state,
        reason=found.problem,
        data=ComparedRun(
            replay=row.wire_id,
            number=number,
            verdict=said.verdict,
            why=said.why,
            runs=said.runs,
            image=said.image,
            version=said.version,
            differences=said.differences,
            asked_by=row.asked_by,
            values=values,
        ),
    )


def _sealed(invocation: Invocation, number: int, values: dict[str, Any]) -> Snapshot:
    """Of a person who was erased while it ran nothing is kept."""

    def seal() -> Snapshot:
        return evidence.seal_values(
            tenant_id=invocation.tenant_id,
            invocation_id=invocation.pk,
            kind=SnapshotKind.REPLAY,
            number=number,
            value=values,
            key=find_values_key(invocation),
        )

    try:
        with transaction.atomic():
            return seal()
    except IntegrityError:
        if not recheck_forgotten(invocation):
            raise
        return seal()


def build_trial_batch(row: Replay) -> ReplayBatch:
    outcome = run_trial(row)
    result = row.result | outcome.to_json() | {"counts": {outcome.state or str(ReplayVerdict.CANNOT): 1}}
    verdict = str(ReplayVerdict.CANNOT) if outcome.why else ""
    return ReplayBatch(1, 1, None, result, last=True, verdict=verdict, write=partial(keep_answer, row, outcome))


PIECES: dict[str, Callable[[Replay], ReplayBatch]] = {
    What.FACTS: build_facts_batch,
    What.DECISIONS: build_decisions_batch,
    What.RUNS: build_runs_batch,
    What.TRIAL: build_trial_batch,
}
