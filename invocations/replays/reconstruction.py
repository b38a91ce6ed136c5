"""Reconstruction: what the facts alone say about a call, and whether its row says the same.

The facts of a call, from its Begin to its End, are read as bytes; each field that they hold is put beside the row and the stored
values. ``not_kept`` says that a side has nothing to compare: values were erased, or facts of that time did not say it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evidence import services as evidence
from evidence.keys.subject_keys import fingerprint_under
from evidence.kinds import BEGINS, ENDS, Kind
from evidence.leaves import ABSENT, Leaf
from evidence.leaves.call_begins import Begin, DecidedCall
from evidence.leaves.call_ends import End
from evidence.leaves.calls import ResumedCall
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.problems import KeyUnavailable, ValuesErased
from invocations.end.end_leaf import shorten_sources
from invocations.models import Invocation, State
from invocations.replays.redecision import Redecider
from invocations.run_profiles.services import find_profile_document
from invocations.value_keys import known_key_of
from kernel.canonical import compute_digest
from kernel.ids import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from evidence.leaves import Commitment
    from evidence.leaves.call_begins import ToolDigests

EQUAL, DIFFERS, NOT_KEPT = "equal", "differs", "not_kept"
HASHED_SINCE = 2  # version of the leaf
COMMITTED: dict[SnapshotKind, Callable[[CallFacts], Commitment | None]] = {
    SnapshotKind.INPUT: lambda told: told.begun.input,
    SnapshotKind.OUTPUT: lambda told: told.ended.output,
    SnapshotKind.ERROR: lambda told: told.ended.error,
    SnapshotKind.LOGS: lambda told: told.ended.logs,
}


@dataclass(frozen=True, slots=True)
class ReconstructionFinding:
    """One field. ``facts`` and ``row`` are ids, digests, names and times, never values of the call."""

    field: str
    verdict: str
    facts: str = ""
    row: str = ""

    def to_json(self) -> dict[str, str]:
        return {"field": self.field, "verdict": self.verdict, "facts": self.facts, "row": self.row}


def choose_verdict(findings: Iterable[ReconstructionFinding]) -> str:
    return DIFFERS if any(each.verdict == DIFFERS for each in findings) else EQUAL


@dataclass(slots=True)
class CallFacts:
    """What the facts of one call say. Of a call without a Begin or an End, ``begin`` or ``end`` says nothing."""

    leaves: list[Leaf]
    broken: list[str]  # facts whose columns or hash are not those of their leaf
    begin: Leaf = field(init=False)
    end: Leaf = field(init=False)
    begun: Begin = field(init=False)
    ended: End = field(init=False)
    decided: list[DecidedCall] = field(
        init=False
    )  # the newest first: a held call is decided about again when it goes on

    def __post_init__(self) -> None:
        self.begin, self.end = self.first(*BEGINS), self.first(*ENDS)
        self.begun, self.ended = self.begin.read_data(Begin), self.end.read_data(End)
        resumed = [leaf.read_data(ResumedCall) for leaf in self.of(Kind.INVOCATION_RESUMED)]
        self.decided = [*reversed(resumed), self.begun]

    def of(self, *kinds: str) -> list[Leaf]:
        return [leaf for leaf in self.leaves if leaf.kind in kinds]

    def first(self, *kinds: str) -> Leaf:
        return next(iter(self.of(*kinds)), Leaf.from_data(None))

    @property
    def has_begun(self) -> bool:
        return bool(self.begin.kind)

    @property
    def has_ended(self) -> bool:
        return bool(self.end.kind)

    @property
    def tool(self) -> ToolDigests | None:
        return self.ended.tool or self.begun.tool

    @property
    def state(self) -> str:
        """Where the facts leave the call."""
        if self.has_ended:
            return str(self.end.outcome)
        if self.of(Kind.INVOCATION_HELD) and not self.of(Kind.INVOCATION_RESUMED):
            return State.HELD
        return {"held": State.HELD, "denied": State.DENIED}.get(str(self.begin.outcome), State.QUEUED)

    def find_decided(self, read: Callable[[DecidedCall], Any]) -> Any:
        """What was decided last, of what facts say."""
        return next((found for found in map(read, self.decided) if found is not None), None)


def load_call_facts(invocation: Invocation) -> CallFacts:
    rows = Fact.objects.of_calls(invocation.pk).filter(tenant_id=invocation.tenant_id).order_by("id")
    return read_call_facts(rows)


def read_call_facts(rows: Iterable[Fact]) -> CallFacts:
    leaves, broken = [], []
    for row in rows:
        raw = bytes(row.leaf)
        leaf = json.loads(raw)
        columns = {"kind": row.kind, "outcome": row.outcome, "reason": row.reason, "tool": row.tool, "id": row.wire_id}
        if hashlib.sha256(b"\x00" + raw).digest() != bytes(row.leaf_hash) or any(
            leaf.get(name, "") != value for name, value in columns.items()
        ):
            broken.append(row.wire_id)
        leaves.append(Leaf.from_data(leaf))
    return CallFacts(leaves, broken)


def _iso(moment: Any) -> str:
    return str(moment.isoformat(timespec="microseconds")) if moment is not None else ""


def _wire(prefix: str, id: Any) -> str:
    return encode(prefix, id) if id else ""


# Field to what the facts say, and what the row says. Facts that say nothing are None, or ABSENT.
FIELDS: dict[str, tuple[Callable[[CallFacts, Invocation], Any], Callable[[CallFacts, Invocation], Any]]] = {
    "agent": (lambda told, _: told.begin.actor.id, lambda _, row: encode("agt", row.agent_id)),
    "tool": (lambda told, _: told.begin.tool or "", lambda _, row: row.tool),
    "created_at": (lambda told, _: told.begin.at, lambda _, row: _iso(row.created_at)),
    "finished_at": (lambda told, _: told.end.at or "", lambda _, row: _iso(row.finished_at)),
    "reason": (lambda told, _: told.end.reason or "", lambda _, row: row.reason if row.is_final else ""),
    "attempt": (
        lambda told, row: told.ended.attempt if told.has_ended and row.attempt else None,
        lambda _, row: row.attempt,
    ),
    "dry_run": (lambda told, _: told.begun.dry_run, lambda _, row: row.dry_run),
    "origin": (lambda told, _: told.begun.origin, lambda _, row: row.origin),
    "version": (
        lambda told, _: told.tool and told.tool.version,
        lambda _, row: row.version and row.version.version,
    ),
    "manifest": (
        lambda told, _: told.tool and told.tool.manifest,
        lambda _, row: row.version and row.version.manifest_digest,
    ),
    "build": (lambda told, _: told.tool and told.tool.build, lambda _, row: row.version and row.version.build_digest),
    "policy": (
        lambda told, _: told.find_decided(lambda each: each.policy and each.policy.version),
        lambda _, row: row.policy_version,
    ),
    "policy_hash": (
        lambda told, _: told.find_decided(lambda each: each.policy and each.policy.hash),
        lambda _, row: row.policy_hash,
    ),
    "grant": (
        lambda told, _: told.find_decided(lambda each: each.grant),
        lambda _, row: _wire("grt", row.grant_id),
    ),
    "consent": (
        lambda told, _: told.find_decided(lambda each: each.consent),
        lambda _, row: _wire("cns", row.consent_id),
    ),
    "account": (
        lambda told, _: told.find_decided(lambda each: each.account) or "",
        lambda _, row: row.account_wire_id,
    ),
    "profile": (lambda told, _: _profile(told), lambda _, row: row.profile_hash),
    "obligations": (
        lambda told, row: told.begun.obligations if row.obligations else "",
        lambda _, row: compute_digest(row.obligations) if row.obligations else "",
    ),
    "resolution": (
        lambda told, _: told.first(Kind.INVOCATION_RESOLVED).outcome or "",
        lambda _, row: row.resolution,
    ),
}


def _profile(told: CallFacts) -> str | None:
    """The End's word, or that of what the call was decided by last."""
    if told.ended.profile is not None:
        return told.ended.profile
    found: str | None = told.find_decided(lambda each: each.profile)
    return found


def reconstruct_call(
    invocation: Invocation, *, opened: bool, redecider: Redecider | None = None
) -> list[ReconstructionFinding]:
    """Every field. ``opened``: stored values are decrypted and committed to anew; else only what lies beside them is compared.

    Within :func:`one_snapshot`, in which ``invocation`` was read too: what happens between two reads is no difference.
    """
    told = load_call_facts(invocation)
    if not told.has_begun:
        return [ReconstructionFinding("begin", DIFFERS, row=invocation.wire_id)]
    findings = [ReconstructionFinding("leaves", DIFFERS if told.broken else EQUAL, facts=", ".join(told.broken))]
    findings += [
        _compared("pair", told.has_ended, invocation.is_final),
        _compared("state", _running_as(told.state, invocation), invocation.state),
    ]
    for name, (facts, row) in FIELDS.items():
        findings.append(_compared(name, facts(told, invocation), row(told, invocation)))
    findings += list(_reach(told, invocation))
    findings += list(_budget(told, invocation))
    findings += list(_marked(told, invocation))
    findings += list(_attempts(told, invocation))
    findings += list(_values(told, invocation, opened=opened))
    again = (redecider or Redecider()).look(told.begun, invocation.tenant_id)
    findings.append(
        ReconstructionFinding("decision", {"same": EQUAL, "not_kept": NOT_KEPT}.get(again.verdict, DIFFERS), again.why)
    )
    return findings


def _running_as(told: str, invocation: Invocation) -> str:
    """Facts do not tell a call that runs from one that waits for a worker."""
    return State.RUNNING if told == State.QUEUED and invocation.state == State.RUNNING else told


def _compared(field: str, facts: Any, row: Any) -> ReconstructionFinding:
    if facts is None or facts is ABSENT:
        return ReconstructionFinding(field, NOT_KEPT, row=_text(row))
    verdict = EQUAL if (facts or "") == (row or "") else DIFFERS
    return ReconstructionFinding(field, verdict, _text(facts), _text(row))


def _text(value: Any) -> str:
    if isinstance(value, list | dict):
        return compute_digest(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None or value is ABSENT else str(value)


def _reach(told: CallFacts, invocation: Invocation) -> Iterable[ReconstructionFinding]:
    """What the call might reach, as the document says that its row refers to."""
    digest = invocation.profile_hash
    document = find_profile_document(invocation) if digest else None
    level = document.get("isolation", "") if isinstance(document, dict) else ""
    yield _compared("level", told.find_decided(lambda each: each.level), level)
    found = "" if document is None else compute_digest(document)
    yield _compared("profile_document", _profile(told) if digest else "", found)


def _budget(told: CallFacts, invocation: Invocation) -> Iterable[ReconstructionFinding]:
    """The budgets that the call held are among those that stand in its row."""
    if told.begun.budget is not None:
        known, held = {line.get("budget") for line in invocation.budget}, told.begun.budget.of
        yield _compared("budget", held, [each for each in held if each in known])


def _marked(told: CallFacts, invocation: Invocation) -> Iterable[ReconstructionFinding]:
    """What callers and tools have named, which facts hold hashed under the key of the call's person."""
    asked: str | None = told.begun.request_id
    sources = told.ended.sources
    mark: Any = invocation.request_id
    named: Any = invocation.sources
    if (told.begin.v or 1) >= HASHED_SINCE:
        key = known_key_of(invocation)
        if key is None or key.destroyed_at is not None:
            asked, sources = None, None
        else:
            mark = fingerprint_under(key, mark.encode())
            named = shorten_sources(named, key)[0] if named else named
    yield _compared("request_id", asked, mark)
    if sources is not None or invocation.sources:
        yield _compared("sources", sources, named)


def _attempts(told: CallFacts, invocation: Invocation) -> Iterable[ReconstructionFinding]:
    """Each run beyond the first has a fact that says why; and the last run is in the End."""
    again = len(told.of(Kind.INVOCATION_RETRIED))
    runs = invocation.attempts.count()
    # One that was cut off and has not run since: it waits for a worker, or was ended while it did.
    waited = again == runs and invocation.state != State.RUNNING and told.ended.run is None
    yield _compared("retries", again, runs if waited else max(0, runs - 1))
    last = invocation.attempts.order_by("-number").first()
    run = told.ended.run
    if last is not None and run is not None and run.image is not ABSENT:
        yield _compared("image", run.image[:80], last.image)
        yield _compared("box", str(run.box)[:64], last.box)


def _values(told: CallFacts, invocation: Invocation, *, opened: bool) -> Iterable[ReconstructionFinding]:
    kept = {
        row.kind: row
        for row in Snapshot.objects.filter(
            tenant_id=invocation.tenant_id,
            invocation_id=invocation.pk,
            kind__in=list(COMMITTED),
        )
    }
    plain = (told.begin.v or 1) < HASHED_SINCE
    for name, read in COMMITTED.items():
        commitment, row = read(told), kept.get(name)
        said = commitment.commit if commitment else None
        if said is None and (row is None or (plain and name in (SnapshotKind.ERROR, SnapshotKind.LOGS))):
            continue
        if row is None:
            yield ReconstructionFinding(str(name), NOT_KEPT, facts=_text(said))
            continue
        yield _compared(str(name), said, row.commitment)
        if opened:
            yield from _opened(str(name), said, row, invocation)


def _opened(field: str, said: Any, row: Snapshot, invocation: Invocation) -> Iterable[ReconstructionFinding]:
    """Salt and value, hashed again."""
    try:
        commitment, value = evidence.recompute_commitment(row), evidence.open_values(row)
    except ValuesErased:
        yield ReconstructionFinding(f"{field}_value", NOT_KEPT, facts=_text(said))
        return
    except KeyUnavailable:
        yield ReconstructionFinding(f"{field}_value", DIFFERS, facts=_text(said))
        return
    yield _compared(f"{field}_value", said, commitment)
    if field == SnapshotKind.OUTPUT and invocation.output_digest:
        yield _compared("output_digest", compute_digest(value["data"]), invocation.output_digest)
