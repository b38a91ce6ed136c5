"""Consent review: what somebody needs to see to decide on a consent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext_noop

from access.consents.services import check_can_decide
from access.models import Consent, ConsentState
from access.redaction import masked_view
from evidence.archives.leaves import load_leaves_at_hand
from evidence.kinds import BEGINS
from evidence.leaves.call_begins import Begin
from evidence.models import Fact, Snapshot, SnapshotKind
from evidence.services import reveal_values
from invocations import services
from invocations.approvals.argument_tables import ArgumentTable, build_argument_table
from invocations.approvals.failed_dry_runs import compute_dry_run_request_id, find_dry_run, find_finished_dry_run
from invocations.approvals.held_calls import restore_call
from invocations.calls import CallRefused, CallRequest
from invocations.end.end_record import build_caller_principal
from invocations.models import Invocation, Origin, State
from kernel.problems import Conflict, find_problem_class
from registry.models import Installation, ToolVersion
from unitools.call_sentences import render_sentence

if TYPE_CHECKING:
    from uuid import UUID

    from kernel.principal import Principal
    from kernel.problems import Problem
    from unitools.call_sentences import SentencePiece
    from unitools.manifest import Manifest

REASON = gettext_noop("To decide on a consent.")
MAX_OTHERS = 5


@dataclass(slots=True)
class ConsentReview:
    """One request with what is around it. ``arguments`` are masked; None when they were not opened."""

    consent: Consent
    version: ToolVersion | None = None
    call: Invocation | None = None
    held: int = 0  # calls that wait for the decision
    rules: list[str] = field(default_factory=list)
    policy: str = ""
    unread: Problem | None = None  # why it is not known which rules asked for it
    arguments: Any = None
    sentence: list[SentencePiece] = field(default_factory=list)
    table: ArgumentTable = field(default_factory=ArgumentTable)
    user: str = ""  # whom the call is made for, as the agent names them; masked
    opened: bool = False
    others: list[Consent] = field(default_factory=list)
    dry_run: Invocation | None = None  # the newest
    finished_dry_run: Invocation | None = None  # the newest that is over; the fields below are what came of it
    dry_result: Any = None
    dry_problem: type[Problem] | None = None
    dry_detail: str = ""

    @property
    def manifest(self) -> Manifest | None:
        return self.version.view if self.version else None

    @property
    def modes(self) -> list[str]:
        """What may be approved: what was asked for and what is narrower; for one call only when it is known which."""
        order = ["once", "period", "standing"]
        found = order[: order.index(self.consent.mode) + 1]
        bound = self.consent.arguments_fingerprint and self.consent.policy_hash
        return found if bound else [mode for mode in found if mode != "once"]

    @property
    def failed_dry_run(self) -> str:
        """The dry run that must be acknowledged by whoever approves; empty: there is none, or it went well."""
        finished = self.finished_dry_run
        return finished.wire_id if finished is not None and finished.state != State.SUCCEEDED else ""

    @property
    def can_run_dry(self) -> bool:
        return self.call is not None and self.manifest is not None and self.manifest.honours_dry_run


def _opened(invocation: Invocation, kind: SnapshotKind, *, by: Principal) -> Any:
    """A stored value; that it was read, and what for, is a fact."""
    snapshot = Snapshot.objects.filter(invocation_id=invocation.pk, tenant_id=by.tenant_id, kind=kind).first()
    return None if snapshot is None else reveal_values(snapshot=snapshot, reason=REASON, by=by)


def _version_of(consent: Consent, call: Invocation | None) -> ToolVersion | None:
    if call is not None:
        return call.version
    found = Installation.objects.filter(tenant_id=consent.tenant_id, name=consent.tool).select_related("version")
    return next((each.version for each in found), None)


def load_consent_review(
    consent: Consent, *, by: Principal, may_see: bool, open_arguments: bool = True
) -> ConsentReview:
    """``may_see``: whether values may be opened at all, masked and with a fact, since this person may decide on them."""
    call = None
    if consent.invocation_id is not None:
        rows = Invocation.objects.filter(tenant_id=by.tenant_id).select_related("version__tool", "agent")
        call = rows.filter(pk=consent.invocation_id).first()
    case = ConsentReview(consent, version=_version_of(consent, call), call=call)
    case.dry_run, case.finished_dry_run = find_dry_run(consent), find_finished_dry_run(consent)
    case.held = Invocation.objects.filter(consent_id=consent.pk, state=State.HELD).count()
    others = Consent.objects.visible_to(by).filter(agent_id=consent.agent_id).exclude(pk=consent.pk)
    case.others = list(others.order_by("-pk")[:MAX_OTHERS])
    if call is not None:
        begin = Fact.objects.of_calls(call.pk).filter(kind__in=BEGINS).first()
        load_leaves_at_hand([begin] if begin else [])
        case.unread = begin.leaf_problem if begin else None
        decision = begin.read_data(Begin).decision if begin else None
        case.rules, case.policy = decision.rules or [] if decision else [], call.policy_version
        if may_see and open_arguments:
            case.opened = True
            _add_arguments(case, call, by=by)
    _add_dry_run(case, by=by, may_see=may_see)
    return case


def _add_arguments(case: ConsentReview, call: Invocation, *, by: Principal) -> None:
    """What the call says, masked: as a sentence, as a table of everything, and whom it is for."""
    sealed = _opened(call, SnapshotKind.INPUT, by=by) or {}
    manifest = case.manifest
    schema = manifest.input_schema if manifest else None
    case.arguments = masked_view(sealed.get("arguments"), schema)
    case.table = build_argument_table(case.arguments, schema)
    case.sentence = render_sentence(manifest.call_sentence, case.arguments) if manifest else []
    case.user = str(masked_view(sealed.get("envelope", {}).get("user_id", "")))


def _add_dry_run(case: ConsentReview, *, by: Principal, may_see: bool) -> None:
    """What came of it, masked like the arguments."""
    finished = case.finished_dry_run
    if finished is None:
        return
    if finished.reason:
        case.dry_problem = find_problem_class(finished.reason)
    if may_see:
        failed = case.dry_problem is not None
        kind = SnapshotKind.ERROR if failed else SnapshotKind.OUTPUT
        sealed = _opened(finished, kind, by=by) or {}
        if failed:
            case.dry_detail = str(masked_view(sealed.get("detail", "")))
        else:
            case.dry_result = masked_view(sealed.get("data"), case.manifest.output_schema if case.manifest else None)


def make_dry_run(*, consent_id: UUID, by: Principal) -> Invocation:
    """Make the call that asked as a dry run, on behalf of its agent: it checks and previews, and changes nothing."""
    consent = Consent.objects.visible_to(by).select_related("agent").get(pk=consent_id)
    check_can_decide(consent, by=by)
    case = load_consent_review(consent, by=by, may_see=False)
    if consent.shown_state != ConsentState.REQUESTED or case.call is None or not case.can_run_dry:
        raise Conflict(
            "This call cannot be tried dry.",
            remedy="Only a request that waits, for a call of a tool that honours dry runs, can be tried.",
        )
    asked = restore_call(case.call)
    envelope = replace(
        asked.envelope,
        request_id=compute_dry_run_request_id(consent),
        actor={"type": "user", "id": by.id},
        dry_run=True,
        idempotency_key="",
    )
    dry = CallRequest(asked.tool, asked.arguments, envelope, origin=Origin.SYSTEM, respond_async=True)
    try:
        return services.invoke_tool(dry, by=build_caller_principal(case.call)).invocation
    except CallRefused as refused:
        return refused.invocation
