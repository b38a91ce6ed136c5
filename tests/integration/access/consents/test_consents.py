"""Consents: does a consent come about only by a person who did not ask for it, and end when it must?"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.utils import timezone

from access.consents import services as consents
from access.models import CONSENT_TRANSITIONS, Consent, ConsentState, Delivery, Notification
from access.problems import ConsentRequired, ConsentTooWide, SelfApproval
from access.services import create_key
from evidence.models import Fact
from kernel.ids import new_id
from kernel.principal import ActorKind, Principal
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.conftest import make_caller
from tests.support.concurrency import at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person

pytestmark = pytest.mark.django_db
WRITE = "sample.tools.write"
DECIDE = {
    ConsentState.APPROVED: consents.approve_consent,
    ConsentState.DENIED: consents.deny_consent,
    ConsentState.REVOKED: consents.revoke_consent,
}


def request(by: Principal, **changes: Any) -> Consent:
    asked: dict[str, Any] = {"tool": WRITE, "versions": "^1", "purpose": "place orders", "validity_s": 600, "by": by}
    return consents.request_consent(**(asked | changes))


def test_asking_again_while_a_request_waits_gives_the_same_request(caller: Caller) -> None:
    first, second = request(caller.by), request(caller.by, purpose="another purpose")

    assert first.pk == second.pk
    assert second.purpose == "place orders"
    assert Fact.objects.filter(kind="consent.requested").count() == 1


@pytest.mark.django_db(transaction=True)
def test_asking_at_once_makes_one_request(caller: Caller) -> None:
    found = at_once(6, lambda number: request(caller.by).pk)

    assert len(set(found)) == 1, found
    assert Consent.objects.count() == 1
    assert Fact.objects.filter(kind="consent.requested").count() == 1


def test_a_request_that_ran_out_makes_room_for_another(caller: Caller) -> None:
    first = request(caller.by)
    Consent.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    second = request(caller.by)

    assert second.pk != first.pk
    first.refresh_from_db()
    assert first.state == "expired"
    assert Fact.objects.filter(kind="consent.expired", subject=first.wire_id).count() == 1


@pytest.mark.parametrize(("changes", "error"), [({"purpose": "  "}, SchemaInvalid)])
def test_a_request_says_what_for(changes: dict[str, Any], error: type[Exception], caller: Caller) -> None:
    with pytest.raises(error):
        request(caller.by, **changes)


def test_people_do_not_ask_for_consent(operator: Person) -> None:
    with pytest.raises(Forbidden):
        request(operator.by)


@pytest.mark.req("TOOLS-19")
def test_the_one_who_asked_cannot_approve(caller: Caller, operator: Person) -> None:
    consent = request(caller.by)
    Consent.objects.update(requested_by=operator.by.id)

    with pytest.raises(SelfApproval):
        consents.approve_consent(consent_id=consent.pk, reason="fine", by=operator.by)


@pytest.mark.req("TOOLS-19")
@pytest.mark.parametrize("decide", DECIDE.values())
def test_only_people_decide(decide: Callable[..., Consent], caller: Caller, operator: Person) -> None:
    consent = request(caller.by)
    other = make_caller(Principal.system("test", tenant_id=operator.by.tenant_id), "other")
    system = Principal.system("x", tenant_id=caller.by.tenant_id)

    for by in (caller.by, other.by, system):
        assert by.kind is not ActorKind.USER
        with pytest.raises(Forbidden):
            decide(consent_id=consent.pk, reason="fine", by=by)


@pytest.mark.parametrize("decide", DECIDE.values())
def test_a_decision_has_a_reason_and_stays_in_the_tenant(
    decide: Callable[..., Consent], caller: Caller, operator: Person, stranger: Person
) -> None:
    consent = request(caller.by)

    with pytest.raises(SchemaInvalid):
        decide(consent_id=consent.pk, reason=" ", by=operator.by)
    with pytest.raises(Consent.DoesNotExist):
        decide(consent_id=consent.pk, reason="fine", by=stranger.by)


@pytest.mark.parametrize("to", DECIDE)
@pytest.mark.parametrize("state", list(ConsentState))
def test_a_decision_is_possible_only_along_the_transitions(
    state: ConsentState, to: ConsentState, caller: Caller, operator: Person
) -> None:
    consent = request(caller.by)
    decided = {"decided_by": "usr_0", "decided_at": timezone.now()} if state in (*DECIDE, ConsentState.USED) else {}
    Consent.objects.update(state=state, **decided)
    facts = Fact.objects.count()

    if to in CONSENT_TRANSITIONS[state]:
        done = DECIDE[to](consent_id=consent.pk, reason="fine", by=operator.by)
        assert (done.state, done.decided_by, done.decision_reason) == (to, operator.by.id, "fine")
        fact = Fact.objects.order_by("-pk")[0]
        assert (fact.kind, fact.subject, fact.actor_id) == (f"consent.{to}", consent.wire_id, operator.by.id)
    else:
        with pytest.raises(Conflict):
            DECIDE[to](consent_id=consent.pk, reason="fine", by=operator.by)
        assert Fact.objects.count() == facts


@pytest.mark.parametrize("to", [ConsentState.APPROVED, ConsentState.DENIED])
def test_a_request_that_ran_out_cannot_be_decided(to: ConsentState, caller: Caller, operator: Person) -> None:
    consent = request(caller.by)
    Consent.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(Conflict, match="expired"):
        DECIDE[to](consent_id=consent.pk, reason="fine", by=operator.by)


@pytest.mark.req("TOOLS-19")
def test_who_made_the_agent_or_a_key_of_it_cannot_approve_for_it(
    caller: Caller, operator: Person, second_operator: Person
) -> None:
    own = make_caller(operator.by, "own")
    create_key(agent=caller.agent, by=second_operator.by)
    for_own, for_key = request(own.by), request(caller.by)

    for consent, by in ((for_own, operator.by), (for_key, second_operator.by)):
        for decide in (consents.approve_consent, consents.deny_consent):
            with pytest.raises(SelfApproval, match="made this agent"):
                decide(consent_id=consent.pk, reason="fine", by=by)
    consents.approve_consent(consent_id=for_own.pk, reason="fine", by=second_operator.by)
    consents.approve_consent(consent_id=for_key.pk, reason="fine", by=operator.by)
    taken = consents.revoke_consent(consent_id=for_own.pk, reason="enough", by=operator.by)
    assert taken.state == "revoked"


def test_a_person_without_the_permission_does_not_decide(caller: Caller, auditor: Person) -> None:
    consent = request(caller.by)

    for decide in (consents.approve_consent, consents.deny_consent):
        with pytest.raises(Forbidden, match=r"consents\.decide"):
            decide(consent_id=consent.pk, reason="fine", by=auditor.by)


def bound(by: Principal, **changes: Any) -> Consent:
    """A request that comes from one call."""
    return request(by, **({"arguments_fingerprint": "a1", "policy_hash": "p1"} | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mode": "standing", "widest": "period"}, "wider than may be given"),
        ({"mode": "period", "widest": "once"}, "wider than may be given"),
        ({"mode": "once"}, "asked for with the call itself"),
        ({"mode": "once", "arguments_fingerprint": "a1"}, "asked for with the call itself"),
    ],
)
def test_no_more_is_asked_for_than_the_manifest_lets_and_one_call_only_with_its_arguments(
    changes: dict[str, Any], words: str, caller: Caller
) -> None:
    with pytest.raises(ConsentTooWide, match=words):
        request(caller.by, **changes)

    assert not Consent.objects.exists()


def test_who_approves_may_narrow_and_not_widen(caller: Caller, operator: Person) -> None:
    def approve(consent: Consent, **changes: Any) -> Consent:
        return consents.approve_consent(consent_id=consent.pk, reason="fine", by=operator.by, **changes)

    standing = request(caller.by, mode="standing", versions="^2")
    assert approve(standing).expires_at is None
    narrowed = approve(request(caller.by, mode="standing", versions="^3"), mode="period", validity_s=60)
    assert (narrowed.mode, narrowed.validity_s) == ("period", 60)
    once = approve(bound(caller.by, mode="period", versions="^4"), mode="once")
    assert (once.mode, once.arguments_fingerprint, once.policy_hash) == ("once", "a1", "p1")
    fact = json.loads(bytes(Fact.objects.filter(kind="consent.approved").order_by("-pk")[0].leaf))
    assert fact["data"]["mode"] == "once"

    period = request(caller.by, versions="^5")
    with pytest.raises(ConsentTooWide):
        approve(period, mode="standing")
    with pytest.raises(ConsentTooWide):
        approve(period, mode="once")
    for seconds in (0, 59, 601):
        with pytest.raises(SchemaInvalid):
            approve(period, validity_s=seconds)
    period.refresh_from_db()
    assert period.state == "requested"


@pytest.mark.django_db(transaction=True)
@pytest.mark.req("TOOLS-19")
def test_of_twenty_uses_at_once_of_a_consent_for_one_call_exactly_one_wins(caller: Caller, operator: Person) -> None:
    consent = bound(caller.by, mode="once")
    consents.approve_consent(consent_id=consent.pk, reason="fine", by=operator.by)

    def use(number: int) -> str:
        with transaction.atomic():
            consents.spend_consent(consent_id=consent.pk, invocation_id=new_id(), by=caller.by)
        return "used"

    done = at_once(20, use)

    assert sorted(type(each).__name__ for each in done) == ["ConsentRequired"] * 19 + ["str"]
    consent.refresh_from_db()
    assert (consent.state, consent.used_at is not None) == ("used", True)
    assert Fact.objects.filter(kind="consent.used", subject=consent.wire_id).count() == 1


@pytest.mark.parametrize("state", ["requested", "denied", "revoked", "expired", "ran out", "period", "foreign"])
def test_a_consent_that_is_not_for_one_call_now_is_not_used_up(
    state: str, caller: Caller, foreign_caller: Caller, operator: Person
) -> None:
    consent = bound(caller.by, mode="period" if state == "period" else "once")
    if state != "requested":
        consents.approve_consent(consent_id=consent.pk, reason="fine", by=operator.by)
    if state in ("denied", "revoked", "expired"):
        Consent.objects.update(state=state)
    if state == "ran out":
        Consent.objects.update(expires_at=timezone.now())
    by = foreign_caller.by if state == "foreign" else caller.by

    with pytest.raises(ConsentRequired):
        consents.spend_consent(consent_id=consent.pk, invocation_id=new_id(), by=by)
    assert not Fact.objects.filter(kind="consent.used").exists()


def test_several_consents_are_revoked_at_once_all_or_none(caller: Caller, operator: Person, stranger: Person) -> None:
    given = [request(caller.by, versions=f"^{number}") for number in (1, 2, 3)]
    for consent in given:
        consents.approve_consent(consent_id=consent.pk, reason="fine", by=operator.by)
    ids = [consent.pk for consent in given]

    for wrong, by in (([*ids, new_id()], operator.by), (ids, stranger.by)):
        with pytest.raises(Consent.DoesNotExist):
            consents.revoke_consents(consent_ids=wrong, reason="enough", by=by)
    with pytest.raises(SchemaInvalid):
        consents.revoke_consents(consent_ids=[], reason="enough", by=operator.by)
    assert Consent.objects.filter(state="approved").count() == 3

    assert consents.revoke_consents(consent_ids=[*ids, ids[0]], reason="enough", by=operator.by) == 3
    assert Fact.objects.filter(kind="consent.revoked").count() == 3


def test_what_ran_out_is_written_down_once(caller: Caller) -> None:
    consent = request(caller.by)
    Consent.objects.update(expires_at=timezone.now())

    assert (consents.expire_consents(), consents.expire_consents()) == (1, 0)
    assert Fact.objects.filter(kind="consent.expired", subject=consent.wire_id).count() == 1


def test_approvers_are_told_off_the_console(caller: Caller) -> None:
    Notification.objects.create(
        tenant_id=caller.by.tenant_id, channel="email", target="ops@example.org", events=["consent.requested"]
    )
    consent = request(caller.by)

    told = Delivery.objects.get()
    assert (told.event, told.subject) == ("consent.requested", consent.wire_id)
    assert told.body["url"] == f"/consents/{consent.wire_id}"
    assert "place orders" not in str(told.body)


def test_a_permission_holds_as_long_as_was_asked(caller: Caller, operator: Person) -> None:
    before = timezone.now()
    consent = consents.approve_consent(consent_id=request(caller.by).pk, reason="fine", by=operator.by)

    assert consent.expires_at is not None
    assert before + timedelta(seconds=600) <= consent.expires_at <= timezone.now() + timedelta(seconds=600)
    Consent.objects.update(expires_at=timezone.now())
    consent.refresh_from_db()
    assert consent.shown_state == "expired"


@pytest.mark.django_db(transaction=True)
def test_two_people_who_decide_at_once_make_one_decision(
    caller: Caller, operator: Person, second_operator: Person
) -> None:
    consent = request(caller.by)

    def decide(number: int) -> Consent:
        do = consents.approve_consent if number else consents.deny_consent
        by = operator.by if number else second_operator.by
        return do(consent_id=consent.pk, reason="fine", by=by)

    done = at_once(2, decide)

    assert sorted(type(each).__name__ for each in done) == ["Conflict", "Consent"]
    assert Fact.objects.filter(kind__in=["consent.approved", "consent.denied"]).count() == 1


def test_consent_is_asked_over_rest_for_tools_that_need_it(
    caller: Caller, operator: Person, enable: Callable[..., Tool]
) -> None:
    enable("echo")
    enable("write", side_effect="Write", idempotency="keyed", consent={"validity_seconds": 120})

    not_needed = caller.post("/consents", {"tool": "sample.tools.echo", "purpose": "x"})
    unknown = caller.post("/consents", {"tool": "sample.tools.nothing", "purpose": "x"})
    too_long = caller.post("/consents", {"tool": WRITE, "purpose": "place orders", "validity_s": 121})
    asked = caller.post("/consents", {"tool": WRITE, "purpose": "place orders"})

    assert too_long.status_code == 422  # and not cut to what may be
    assert too_long.json()["error"]["details"]["findings"] == [
        {
            "pointer": "/validity_s",
            "message": "A consent for this tool holds for 120 seconds at most. Ask for that or less.",
        }
    ]
    assert (not_needed.status_code, unknown.status_code, asked.status_code) == (409, 404, 201)
    assert not_needed.json()["error"]["reason"] == "POLICY.CONSENT_NOT_NEEDED"
    path = asked.headers["Location"].removeprefix("/api/v1")
    assert caller.get(path).json()["data"]["state"] == "requested"
    consent = Consent.objects.get()
    assert consent.validity_s == 120
    consents.deny_consent(consent_id=consent.pk, reason="not now", by=operator.by)
    read = caller.get(path).json()["data"]
    assert (read["state"], read["reason"]) == ("denied", "not now")
    assert [each["id"] for each in caller.get("/consents").json()["data"]["consents"]] == [consent.wire_id]
