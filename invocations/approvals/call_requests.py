"""Requests of a call: a consent or an account that it lacks is asked for, whether it waits for the answer or not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction

from access.consents.services import console_url, request_consent, version_range
from access.models import Consent, ConsentMode, ServerAccount
from access.problems import ConsentRequired
from access.server_accounts.problems import AccountRequired
from access.server_accounts.services import account_url, request_account
from invocations.accept.begin_record import record_denied
from invocations.decide.call_accounts import read_member
from kernel.problems import Problem

if TYPE_CHECKING:
    from datetime import datetime

    from invocations.calls import IncomingCall
    from invocations.decide.decision import Refusal
    from invocations.decide.preflight import Preflight
    from invocations.models import Invocation


def find_missing(preflight: Preflight, *kind: type[Problem]) -> Problem | None:
    return next((each for each in preflight.problems.values() if isinstance(each, kind)), None)


def request_call_consent(incoming: IncomingCall, preflight: Preflight, *, until: datetime | None = None) -> Consent:
    """The request for a consent to this call, in the transaction of the caller. It may be one that waits already."""
    assert preflight.version is not None
    assert preflight.decision_context.installed is not None
    missing = find_missing(preflight, ConsentRequired)
    assert missing is not None
    manifest, mode = preflight.version.manifest, missing.details.get("mode", ConsentMode.ONCE)
    demanded = preflight.verdict.consent if preflight.verdict else None
    validity_s = manifest.consent_validity_s
    consent = request_consent(
        tool=incoming.call.tool,
        versions=version_range(preflight.decision_context.installed.version),
        purpose=incoming.call.envelope.purpose,
        validity_s=min(validity_s, demanded.validity_s) if demanded else validity_s,
        mode=mode,
        widest=mode,
        data_classes=sorted({*manifest.data_classes, *missing.details.get("data_classes", ())}),
        policy_hash=preflight.policy_hash,
        invocation_id=incoming.id,
        until=until,
        by=incoming.by,
        **incoming.fingerprints,
    )
    return Consent.objects.select_for_update().get(pk=consent.pk)  # nobody decides until this call is written down


def request_call_account(incoming: IncomingCall, preflight: Preflight) -> ServerAccount | None:
    """The request that the person of the call connects their account, in the transaction of the caller; None where none is missing."""
    missing = find_missing(preflight, AccountRequired)
    if missing is None:
        return None
    assert preflight.version is not None
    manifest = preflight.version.manifest
    assert manifest.account is not None
    member_id = read_member(missing.details["person"])
    assert member_id is not None
    agent = missing.details["agent"]
    account = request_account(
        resource=manifest.account_resource,
        member_id=member_id,
        agent=agent,
        tool=incoming.call.tool,
        by=incoming.by,
    )
    if account.serves(agent, vouched=not agent):  # nobody would wake a call that waited for it now
        raise AccountRequired(
            "The person has connected their account at this moment.",
            remedy="Call again.",
            details=missing.details | {"account": account.wire_id, "url": account_url(account)},
        )
    return account


@transaction.atomic
def refuse_and_request(incoming: IncomingCall, refusal: Refusal) -> tuple[Refusal, Invocation]:
    """The refused call with its Begin and End, and the requests for what is missing of a person, all or nothing."""
    assert refusal.preflight is not None
    try:
        with transaction.atomic():
            problem = _request_missing(incoming, refusal.preflight)
    except Problem as full:
        # Too many wait already: nobody is asked, and the call is refused for that.
        problem = full
    refusal = replace(refusal, problem=problem)
    return refusal, record_denied(incoming, refusal)


def _request_missing(incoming: IncomingCall, preflight: Preflight) -> Problem:
    """What the caller is told. Where an account and a consent are missing it is told of the account, which is its own user's to see
    to, and somebody is asked for the consent all the same."""
    account = request_call_account(incoming, preflight)
    asked: dict[str, Any] = {}
    missing = find_missing(preflight, ConsentRequired)
    if missing is not None:
        consent = request_call_consent(incoming, preflight)
        asked = {
            "consent": consent.wire_id,
            "state": consent.shown_state,
            "url": console_url(consent),
            "until": consent.expires_at.isoformat() if consent.expires_at else None,
        }
    if account is None:
        assert missing is not None
        remedy = "Show your user `details.url`, where somebody decides, and call again once it is approved."
        return ConsentRequired(missing.detail, remedy=remedy, details=missing.details | asked)
    missing = find_missing(preflight, AccountRequired)
    assert missing is not None
    said = {"account": account.wire_id, "url": account_url(account)} | (
        {"consent": asked["consent"], "consent_url": asked["url"]} if asked else {}
    )
    return AccountRequired(missing.detail, details=missing.details | said)
