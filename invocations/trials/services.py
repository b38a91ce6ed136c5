"""Trials: who has a version run that nobody has approved, with what, and which trials were made.

A trial is a replay without a call to compare with: a worker runs it in a box that reaches nothing (:mod:`invocations.trials.runs`),
nobody's grant is used, and it counts as no call. What was written and answered is sealed under the key of who wrote it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import get_language, to_locale

from access.halts.services import check_not_halted
from evidence import services as evidence
from evidence.keys.subject_keys import get_subject_key
from evidence.leaves.replays import ReplayedValues
from evidence.models import SnapshotKind
from invocations.call_costs.services import find_currency
from invocations.decide.input_validation import collect_findings
from invocations.replays.models import REPLAY_OPEN, Replay, What
from invocations.replays.services import check_can_request, may_try_unreviewed, request_replay
from kernel.http.envelopes import RequestEnvelope
from kernel.ids import new_id
from kernel.problems import Conflict, SchemaInvalid
from registry.models import ToolVersion, VersionState
from registry.problems import OwnSubmission
from registry.versions.compiler import compiled_version

if TYPE_CHECKING:
    from uuid import UUID

    from invocations.replays.models import ReplayQuerySet
    from kernel.principal import Principal

WHY = "A reviewer tries the version with arguments that they wrote."
MOST_OWN = 3  # trials of one person at a time: there are so many replays of a tenant for everybody
SEED_BYTES = 16
LAST = 5


def check_can_try(version: ToolVersion, *, by: Principal) -> None:
    """As its reviewer, not as one of its authors, while it waits for a decision and no kill switch stops calls of it.

    Asked again when it is run.
    """
    if version.review_state != VersionState.SUBMITTED or version.yanked_at is not None:
        raise Conflict(
            "This version does not wait for a review, so it is not tried in one.",
            remedy="Try it from the page of the tool, or replay a call with it.",
        )
    if not may_try_unreviewed(version, by=by):
        raise OwnSubmission(
            "You, or an agent of yours, stand behind this version: somebody else tries it before it is decided.",
            remedy="Ask another reviewer.",
        )
    check_not_halted(
        tenant_id=by.tenant_id,
        publisher_id=version.tool.tenant_id,
        agent_id=None,
        tool=version.tool.name,
        version_id=version.pk,
    )


@transaction.atomic
def request_trial(*, version_id: UUID, arguments: dict[str, Any], by: Principal) -> Replay:
    """Have a worker run the version with ``arguments``. What its input schema does not take is refused, and nothing is kept of it."""
    version = ToolVersion.objects.select_related("tool").get(pk=version_id, tool__tenant_id=by.tenant_id)
    check_can_try(version, by=by)
    check_can_request(by)
    own = Replay.objects.visible_to(by).filter(what=What.TRIAL, asked_by=by.id, state__in=REPLAY_OPEN)
    if own.count() >= MOST_OWN:
        raise Conflict(f"{MOST_OWN} of your trials wait or run.", remedy="Wait until one has ended, or cancel one.")
    findings = collect_findings(compiled_version(version.pk).input_validator, arguments)
    if findings:
        raise SchemaInvalid("The version does not take these arguments.", details={"findings": findings})
    id = new_id()
    snapshot = evidence.seal_values(
        tenant_id=by.tenant_id,
        invocation_id=id,
        kind=SnapshotKind.INPUT,
        value={
            "arguments": arguments,
            "envelope": _build_envelope(id, by).context(),
            "seed": os.urandom(SEED_BYTES).hex(),
        },
        key=get_subject_key(
            tenant_id=by.tenant_id, subject=evidence.compute_user_fingerprint(by.id, tenant_id=by.tenant_id)
        ),
    )
    return request_replay(
        by,
        WHY,
        arguments=ReplayedValues.of(snapshot),
        id=id,
        what=What.TRIAL,
        tool=version.tool.name,
        version=version,
    )


def _build_envelope(id: UUID, by: Principal) -> RequestEnvelope:
    """What a call of the reviewer would say, and the tool may know."""
    return RequestEnvelope(
        request_id=f"trial {id.hex}",
        actor={"type": "user", "id": by.id},
        user_id=by.id,
        locale=to_locale(get_language() or settings.LANGUAGE_CODE).replace("_", "-"),
        currency=find_currency(by.tenant_id),
        timezone=settings.TIME_ZONE,
        dry_run=True,
    )


def select_trials(version: ToolVersion, *, by: Principal) -> ReplayQuerySet:
    """Those of everybody: that a version was tried, and how that went, each reviewer may know."""
    return Replay.objects.visible_to(by).filter(what=What.TRIAL, version=version)


def list_last_trials(version: ToolVersion, *, by: Principal) -> list[Replay]:
    return list(select_trials(version, by=by).order_by("-pk")[:LAST])


def list_own_trials(version: ToolVersion, *, by: Principal) -> ReplayQuerySet:
    """Those of which this person may read what was written and answered."""
    return select_trials(version, by=by).filter(asked_by=by.id)
