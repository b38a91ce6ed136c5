"""End leaf: what the End fact says of a call, beside its columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from evidence.keys.subject_keys import fingerprint_under
from evidence.leaves.base import ListDigest
from evidence.leaves.call_begins import ToolDigests
from evidence.leaves.call_ends import End, RunReport
from invocations.end.egress_report import EgressReport, build_egress_report, describe_service
from invocations.end.spent_budgets import build_spent_budget
from invocations.model_calls.model_facts import describe_answered_model
from invocations.proposals.proposal_links import hash_proposals
from kernel.canonical import canonicalize, compute_digest

if TYPE_CHECKING:
    from evidence.leaves import Commitment
    from evidence.leaves.call_ends import ArtifactSummary, FileChanges, HashedOutput, KeptToolFiles
    from evidence.models import SubjectKey
    from invocations.end.endings import Ending
    from invocations.models import Invocation
    from invocations.sandbox.base import RunOutcome

MAX_SOURCES_BYTES = 8 * 1024  # in a fact, which has room for other things too
MAX_CHANGES_BYTES = 2 * 1024  # of obligations, and of repairs
# Of a ruleset, a table, a document.
PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._:/-]{0,79}")
PLAIN = {"type": PLAIN_NAME, "name": PLAIN_NAME, "version": re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,31}")}
KINDS_OF_CAPABILITIES = frozenset({"browser", "cidr", "fs", "net", "proc", "system"})


class SealedEnding(NamedTuple):
    """The commitments to the values of an ending."""

    output: Commitment | None = None
    raw_output: HashedOutput | None = None
    error: Commitment | None = None
    logs: Commitment | None = None


def build_end_leaf(
    invocation: Invocation,
    ending: Ending,
    key: SubjectKey,
    sealed: SealedEnding,
    *,
    artifacts: ArtifactSummary | None,
    files: FileChanges | None,
    tool_files: KeptToolFiles | None,
) -> End:
    """What the End fact says beside its columns."""
    version, outcome = invocation.version, ending.outcome
    sources, all_sources = shorten_sources(ending.sources, key)
    repairs, all_repairs = shorten_changes([repair.to_json() for repair in ending.repairs])
    obligations, all_obligations = shorten_changes(ending.obligations)
    egress = build_egress_report(outcome) if outcome is not None else EgressReport()
    return End(
        state=str(ending.state),
        attempt=invocation.attempt,
        dry_run=invocation.dry_run,
        tool=ToolDigests(
            name=invocation.tool,
            version=version.version,
            manifest=version.manifest_digest,
            build=version.build_digest,
        )
        if version is not None
        else None,
        profile=invocation.profile_hash or None,
        budget=build_spent_budget(ending) if invocation.budget else None,
        run=build_run_report(invocation, outcome) if outcome is not None else None,
        model=describe_answered_model(ending.model, hash_proposals(ending.output, key))
        if ending.model is not None
        else None,
        blocked=list_blocked_kinds(outcome) or None if outcome is not None else None,
        output=sealed.output,
        raw_output=sealed.raw_output,
        error=sealed.error,
        logs=sealed.logs,
        artifacts=artifacts,
        files=files,
        tool_files=tool_files,
        sources=sources,
        all_sources=all_sources,
        repairs=repairs,
        all_repairs=all_repairs,
        obligations=obligations,
        all_obligations=all_obligations,
        connections=egress.connections,
        all_connections=egress.all_connections,
        connections_known=egress.known,
        connections_elsewhere=egress.elsewhere,
        service=describe_service(outcome, unlike_document=ending.unlike_document, sent_files=ending.sent_files)
        if outcome is not None
        else None,
        account=invocation.account_wire_id or None if ending.ran else None,
    )


def build_run_report(invocation: Invocation, outcome: RunOutcome) -> RunReport:
    """How the tool ran."""
    return RunReport(
        status=str(outcome.status),
        image=outcome.image,
        clock=invocation.started_at.isoformat() if invocation.started_at else "",
        box=outcome.box,
        level=outcome.level,
        clean=outcome.clean,
        duration_ms=round(outcome.duration_ms),
        cpu_ms=None if outcome.cpu_ms is None else round(outcome.cpu_ms),
        max_rss_bytes=outcome.max_rss_bytes,
        result_bytes=outcome.result_bytes,
        cpu_exact=None if outcome.cpu_exact else False,
        waited_ms=outcome.waited_ms,
    )


def list_blocked_kinds(outcome: RunOutcome) -> list[str]:
    """Only kinds that we know: what a tool reaches for is its own word and could spell out a value. The rest is sealed."""
    kinds = {each.partition(":")[0] for each in {*outcome.attempts, *([outcome.blocked] if outcome.blocked else [])}}
    return sorted(kinds & KINDS_OF_CAPABILITIES) + (["other"] if kinds - KINDS_OF_CAPABILITIES else [])


def shorten_sources(
    sources: list[dict[str, str]], key: SubjectKey
) -> tuple[list[dict[str, str]] | None, ListDigest | None]:
    """All of them while they fit; of very many the first, with the number and a hash of all. What a tool calls a source is its own
    word: a name that is none of a ruleset or a table, but an address or a number, say, is only hashed.
    """
    if not sources:
        return None, None
    kept: list[dict[str, str]] = []
    size = 0
    for source in (_hash_free_text(each, key) for each in sources):
        size += len(canonicalize(source)) + 1
        if size > MAX_SOURCES_BYTES:
            whole = fingerprint_under(key, canonicalize(sources))
            return kept, ListDigest(count=len(sources), hash=whole)
        kept.append(source)
    return kept, None


def _hash_free_text(source: dict[str, str], key: SubjectKey) -> dict[str, str]:
    """The plain hash of what is only hashed could be guessed, so it is hashed as well."""
    plain = {name for name, text in source.items() if not text or (name in PLAIN and PLAIN[name].fullmatch(text))}
    if plain >= PLAIN.keys():
        return source
    return {name: text if name in plain else fingerprint_under(key, text.encode()) for name, text in source.items()}


def shorten_changes(changes: list[dict[str, Any]]) -> tuple[list[dict[str, Any]] | None, ListDigest | None]:
    """What was done to the output, as pointers and kinds, never values; of very long lists only their length and digest."""
    if not changes:
        return None, None
    if len(canonicalize(changes)) > MAX_CHANGES_BYTES:
        return None, ListDigest(count=len(changes), hash=compute_digest(changes))
    return changes, None
