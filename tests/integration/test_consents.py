"""Does a consent come about only by a person who did not ask for it, and end when it must?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from access import consents
from access.models import CONSENT_TRANSITIONS, Consent, ConsentState
from access.problems import SelfApproval
from evidence.models import Fact
from tests.conftest import make_caller
from tests.threads import at_once
from toolhub.kernel.principal import ActorKind, Principal
from toolhub.kernel.problems import Conflict, Forbidden, SchemaInvalid

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
    other = make_caller(operator.by, "other")
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
    decided = {"decided_by": "usr_0", "decided_at": timezone.now()} if state in DECIDE else {}
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


def test_a_permission_holds_as_long_as_was_asked(caller: Caller, operator: Person) -> None:
    before = timezone.now()
    consent = consents.approve_consent(consent_id=request(caller.by).pk, reason="fine", by=operator.by)

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
    asked = caller.post("/consents", {"tool": WRITE, "purpose": "place orders"})

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
