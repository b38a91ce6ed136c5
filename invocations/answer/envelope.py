"""Answer envelope: what a caller gets to see of a call.

The SPEC-4 envelope around the tool's value, with the ``call`` object. Values come from the sealed snapshots; an answer that
is read again is the answer that was given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.conf import settings

from access.models import ServerAccount
from access.server_accounts.services import account_url
from evidence import services as evidence
from evidence.models import Snapshot, SnapshotKind
from invocations.artifacts.links import build_artifact_link
from invocations.end.end_record import collect_notices, restore_problem
from invocations.models import Invocation, State
from invocations.problems import AnswerErased
from invocations.run.live_output import read_live_output
from kernel.database.rows import PreparedQuery
from kernel.http.envelopes import Evidence, EvidenceSource, ResponseEnvelope
from kernel.ids import encode
from kernel.observability.telemetry import read_trace_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from invocations.calls import AnsweredCall
    from invocations.decide.preflight import Preflight
    from kernel.problems import Problem

SEALED = PreparedQuery(
    lambda invocation_id: Snapshot.objects.filter(invocation_id=invocation_id).select_related(
        "subject_key__tenant_key"
    ),
    invocation_id=UUID,
)
STATUS = {State.SUCCEEDED: "ok", State.DENIED: "denied"}


def get_call_status(invocation: Invocation) -> str:
    return STATUS.get(State(invocation.state), "error") if invocation.is_final else "pending"


def build_call_object(
    invocation: Invocation,
    *,
    preflight: Preflight | None = None,
    plan: Any = None,
    obligations: Sequence[dict[str, Any]] = (),
    artifacts: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The ``call`` object of requirements §8. ``obligations``: what was done to the output."""
    call: dict[str, Any] = {
        "call_id": invocation.wire_id,
        "status": get_call_status(invocation),
        "state": invocation.state,
        "tool": invocation.tool,
        "version": invocation.version.version if invocation.version else None,
        "dry_run": invocation.dry_run,
        "request_id": invocation.request_id,
        "profile_hash": invocation.profile_hash or None,
        "policy_version": invocation.policy_version or None,
        "budget": invocation.budget or None,
        "obligations": list(obligations),
        "artifacts": [each | {"url": build_artifact_link(each["id"], invocation)} for each in artifacts],
        "post_execution_plan": plan,
        "trace_id": read_trace_id(invocation.trace) or None,
        "created_at": invocation.created_at.isoformat(),
        "finished_at": invocation.finished_at.isoformat() if invocation.finished_at else None,
    }
    if invocation.proposed_by_id is not None:
        call["proposed_by"] = encode("inv", invocation.proposed_by_id)
    if invocation.resolution:
        call["resolution"] = invocation.resolution
    if live := read_live_output(invocation):
        call["live"] = live
    if preflight is not None and preflight.refused_at:
        call["refused_at"] = preflight.refused_at
    if invocation.state == State.HELD:
        call["held"] = describe_wait(invocation)
    return call


def describe_wait(invocation: Invocation) -> dict[str, Any]:
    """What a held call waits for. ``url``: the page of it; of the account first, which the caller's own user sees to."""
    until = invocation.held_until.isoformat() if invocation.held_until else None
    said: dict[str, Any] = {}
    if invocation.consent_id is not None:
        wire_id = encode("cns", invocation.consent_id)
        said = {"consent": wire_id, "url": f"{settings.TOOLHUB_PUBLIC_URL}/consents/{wire_id}"}
    if invocation.account_id is not None:
        account = ServerAccount.objects.get(pk=invocation.account_id)
        said |= {"account": account.wire_id}
        if invocation.consent_id is None or not account.is_connected:
            said |= {"url": account_url(account)} | ({"consent_url": said["url"]} if "url" in said else {})
    return said | {"until": until}


def collect_sources(invocation: Invocation) -> tuple[EvidenceSource, ...]:
    """First the tool with the hash of its data, then the rules and documents that it named."""
    if not invocation.output_digest or invocation.version is None or invocation.finished_at is None:
        return ()
    at = invocation.finished_at.isoformat()
    own = EvidenceSource(
        type="tool", name=invocation.tool, version=invocation.version.version, hash=invocation.output_digest, ts=at
    )
    return (
        own,
        *(
            EvidenceSource(type=each["type"], name=each["name"], version=each["version"], hash=each["hash"], ts=at)
            for each in invocation.sources
        ),
    )


def build_answer_envelope(
    invocation: Invocation,
    *,
    problem: Problem | None = None,
    preflight: Preflight | None = None,
    notices: Sequence[str] = (),
    sealed: Sequence[Snapshot] | None = None,
) -> ResponseEnvelope:
    """The envelope for the state the call is in. ``problem``: the refusal at hand, which saves opening what was just sealed.

    ``notices``: about this request; who reads the call again does not get them. ``sealed``: its snapshots, if they were read with it.
    """
    found = _find_snapshots(invocation, sealed) if invocation.is_final else {}
    output, error = found.get(SnapshotKind.OUTPUT), found.get(SnapshotKind.ERROR)
    value: dict[str, Any] = evidence.open_values(output) if output else {}
    warnings = value.get("warnings", []) if invocation.is_final else collect_notices(invocation)
    if invocation.reason:
        failure: dict[str, Any] = evidence.open_values(error) if error else {}
        warnings = [*warnings, *failure.get("warnings", [])]
        problem = problem or restore_problem(invocation, failure)
    elif output is None and invocation.state == State.SUCCEEDED:
        problem = AnswerErased()
    return ResponseEnvelope(
        data=value.get("data"),
        warnings=(*warnings, *notices),
        error=problem,
        ttl_seconds=invocation.ttl_seconds,
        evidence=Evidence(snapshot_id=output.wire_id if output else None, sources=collect_sources(invocation)),
        call=build_call_object(
            invocation,
            preflight=preflight,
            plan=value.get("post_execution_plan"),
            obligations=value.get("obligations", []),
            artifacts=value.get("artifacts", []),
        ),
    )


def _find_snapshots(invocation: Invocation, sealed: Sequence[Snapshot] | None) -> dict[str, Snapshot]:
    return {row.kind: row for row in (SEALED.all(invocation_id=invocation.pk) if sealed is None else sealed)}


def build_answered_envelope(answered: AnsweredCall) -> ResponseEnvelope:
    """The envelope for who waited for the call."""
    envelope = build_answer_envelope(answered.invocation, notices=answered.notices, sealed=answered.sealed)
    if answered.whole_data is None or envelope.error is not None:
        return envelope
    return replace(envelope, data=answered.whole_data)
