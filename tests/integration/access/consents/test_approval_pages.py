"""Approval pages: does somebody who decides see what will happen, masked and on record, and can they say how far it goes?"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from access.consents import services as consents
from access.grants.requests import request_grant
from access.grants.services import give_grant
from access.models import Consent, Grant, GrantRequest
from access.services import create_key
from evidence.models import Fact
from evidence.services import open_free_text
from invocations.models import Invocation
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.conftest import make_caller
from tests.support.calls import row_of, writer
from tests.support.raw_database import sql, take_down_triggers

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

pytestmark = pytest.mark.django_db
WRITE = "sample.tools.write"
SECRET = {"text": "buy", "password": "hunter2-hunter2", "email": "ann.example@example.org"}
ARGUMENTS = {
    "type": "object",
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "description": "What is written."},
    },
    "additionalProperties": True,
}
DRY = {"HX-Request": "true", "HX-Target": "dry-run"}


@pytest.fixture
def held(
    enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, sandbox: ScriptedSandbox, caller: Caller
) -> Invocation:
    writer(
        enable,
        call_sentence="Write “{text}” down",
        input_schema=ARGUMENTS,
        data_classes=["payment"],
        dry_run=True,
        safety_class="Medium",
        consent={"validity_seconds": 7200},
    )
    grant()
    return row_of(caller.invoke(WRITE, SECRET, on_consent="hold", purpose="to place an order"))


def page_of(person: Person, consent: Consent, **headers: str) -> str:
    answer = person.client().get(f"/consents/{consent.wire_id}", headers=headers)
    assert answer.status_code == 200
    text: str = answer.content.decode()
    return text


def reads(consent: Consent) -> int:
    return Fact.objects.filter(kind="snapshot.read", invocation_id=consent.invocation_id).count()


@pytest.mark.req("CARD-3", "SPEC-10", "TOOLS-19")
def test_the_page_says_what_will_happen_with_the_arguments_masked_and_the_look_on_record(
    held: Invocation, operator: Person
) -> None:
    consent = Consent.objects.get()

    text = page_of(operator, consent)

    for said in ("to place an order", WRITE, "payment", "Medium risk", "1 call is waiting", held.policy_version, "buy"):
        assert said in text, said
    assert "hunter2" not in text
    assert "ann.example@example.org" not in text
    fact = Fact.objects.get(kind="snapshot.read")
    assert (fact.actor_id, open_free_text(fact)) == (operator.by.id, {"reason": "To decide on a consent."})


@pytest.mark.unpaired
def test_no_rule_is_said_to_be_missing_where_the_archive_does_not_say_which_there_were(
    held: Invocation, operator: Person
) -> None:
    take_down_triggers()
    sql("UPDATE evidence_fact SET leaf = %s WHERE invocation_id = %s", b"", held.pk)

    text = page_of(operator, Consent.objects.get())

    assert "No policy rule requires this consent" not in text
    assert "What this fact says is not in the archive as it was sealed." in text


@pytest.mark.parametrize("who", ["auditor", "maker of the agent"])
def test_who_may_not_decide_is_told_why_and_sees_no_arguments(
    who: str, held: Invocation, auditor: Person, operator: Person, caller: Caller
) -> None:
    consent = Consent.objects.get()
    person = auditor
    if who == "maker of the agent":
        person = operator
        make_key_of(operator, caller)

    text = page_of(person, consent)

    assert "/decision" not in text
    assert ("somebody else must decide" in text) is (who != "auditor")
    assert "buy" not in text
    assert reads(consent) == 0


def make_key_of(person: Person, caller: Caller) -> None:
    create_key(agent=caller.agent, by=person.by)


def test_a_decided_consent_opens_no_arguments_any_more(held: Invocation, operator: Person) -> None:
    consent = Consent.objects.get()
    consents.deny_consent(consent_id=consent.pk, reason="no", by=operator.by)

    assert "buy" not in page_of(operator, consent)
    assert reads(consent) == 0


@pytest.mark.parametrize(
    ("form", "mode", "validity"),
    [
        ({"mode": "once"}, "once", 7200),
        ({"mode": "period", "amount": "90", "unit": "60"}, "period", 5400),
        ({"mode": "period", "amount": "2", "unit": "3600"}, "period", 7200),
        ({"mode": "period"}, "period", 7200),
        ({"mode": "once", "decision": ""}, "once", 7200),
    ],
)
def test_an_approval_says_how_far_it_goes(
    form: dict[str, str], mode: str, validity: int, held: Invocation, operator: Person
) -> None:
    consent = Consent.objects.get()
    said = {"decision": "approve", "reason": "The customer agreed.", **form}

    answer = operator.client().post(f"/consents/{consent.wire_id}/decision", said)

    assert answer.status_code == 302, answer.content.decode()
    consent.refresh_from_db()
    assert (consent.mode, consent.validity_s) == (mode, validity)


@pytest.mark.parametrize(
    "form",
    [
        {"mode": "period", "amount": "9", "unit": "86400"},
        {"mode": "period", "amount": "0", "unit": "60"},
        {"mode": "always"},
        {"amount": "1", "unit": "7"},
        {"reason": " "},
        {"decision": "shrug"},
        {},
        {"decision": ""},
    ],
)
def test_a_decision_that_means_nothing_keeps_what_was_typed(
    form: dict[str, str], held: Invocation, operator: Person
) -> None:
    consent = Consent.objects.get()
    said = {"decision": "approve", "reason": "The customer agreed.", **form}

    answer = operator.client().post(f"/consents/{consent.wire_id}/decision", said)

    assert answer.status_code == 422
    if "reason" not in form:
        assert "The customer agreed." in answer.content.decode()
    consent.refresh_from_db()
    assert consent.state == "requested"


def test_more_than_was_asked_for_is_refused(held: Invocation, operator: Person) -> None:
    said = {"decision": "approve", "reason": "x", "mode": "standing"}

    answer = operator.client().post(f"/consents/{Consent.objects.get().wire_id}/decision", said)

    assert answer.status_code == 422
    assert "wider than may be given" in answer.content.decode()


def test_a_call_reads_as_a_sentence_and_every_argument_stands_in_one_table(held: Invocation, operator: Person) -> None:
    text = page_of(operator, Consent.objects.get())

    assert "<bdi>buy</bdi>" in text
    table = text.partition('aria-label="Arguments, scrolls sideways"')[2].partition("</table>")[0]
    for said in ("text", "What is written.", "password", "email"):
        assert said in table, said
    assert "hunter2" not in text


def test_nothing_is_chosen_beforehand_and_enter_decides_nothing(held: Invocation, operator: Person) -> None:
    form = page_of(operator, Consent.objects.get()).partition('id="decision"')[2].partition("</form>")[0]

    assert "checked" not in form
    assert "btn primary" not in form
    first = form.partition('<button type="submit"')[2].partition(">")[0]
    assert "disabled" in first


def test_after_a_decision_comes_the_next_request_that_one_may_decide_on(
    held: Invocation, operator: Person, caller: Caller
) -> None:
    first = Consent.objects.get()
    second = consents.request_consent(tool=WRITE, versions="^2", purpose="x", validity_s=60, by=caller.by)
    mine = make_caller(operator.by, "own", scopes=("consents:request",))
    consents.request_consent(tool=WRITE, versions="^1", purpose="x", validity_s=60, by=mine.by)
    said = {"reason": "The customer agreed.", "mode": "once"}

    done = operator.client().post(f"/consents/{first.wire_id}/decision", said)
    last = operator.client().post(f"/consents/{second.wire_id}/decision", {"reason": "no", "decision": "deny"})

    assert done.headers["Location"] == f"/consents/{second.wire_id}"
    assert last.headers["Location"] == f"/consents/{second.wire_id}"


def test_what_comes_next_is_found_without_looking_behind_one_agent_again_and_again(
    held: Invocation, operator: Person
) -> None:
    first = Consent.objects.get()
    mine = make_caller(operator.by, "own", scopes=("consents:request",))
    counts = []
    for n in range(1, 11):
        consents.request_consent(tool=WRITE, versions=f"^{n}", purpose="x", validity_s=60, by=mine.by)
        if n in (1, 10):
            with CaptureQueriesContext(connection) as queries:
                page_of(operator, first)
            counts.append(len(queries))

    assert counts[0] == counts[1]


# Trying it dry.


@pytest.mark.req("SPEC-2")
def test_a_call_is_tried_dry_before_somebody_decides(
    held: Invocation, operator: Person, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    consent, client = Consent.objects.get(), operator.client()
    preview = {"would": "order", "for": "ann.example@example.org"}
    sandbox.outcome = RunOutcome(RunStatus.OK, value=preview, report={})

    client.post(f"/consents/{consent.wire_id}/try")

    dry = Invocation.objects.exclude(pk=held.pk).get()
    assert (dry.dry_run, dry.origin, dry.agent_id) == (True, "system", held.agent_id)
    waiting = page_of(operator, consent, **DRY)
    assert 'hx-trigger="live"' in waiting
    assert reads(consent) == 0  # the fragment opens no arguments

    bell.deliver()
    finished = page_of(operator, consent, **DRY)

    assert "hx-trigger" not in finished
    assert "would" in finished
    assert "ann.example@example.org" not in finished
    assert "<html" not in finished
    assert [call.context["dry_run"] for _, call in sandbox.calls] == [True]
    begin = Fact.objects.get(invocation_id=dry.pk, kind="dry_run.began")
    assert b'"on_behalf_of":"user"' in bytes(begin.leaf)
    held.refresh_from_db()
    assert held.state == "held"


def test_a_dry_run_that_is_refused_says_why(held: Invocation, operator: Person, bell: Bell) -> None:
    consent = Consent.objects.get()
    Grant.objects.update(revoked_at=timezone.now(), revoked_by="usr_1")

    operator.client().post(f"/consents/{consent.wire_id}/try")

    assert "AUTH.NO_GRANT" in page_of(operator, consent)


def fail_dry(client: Any, consent: Consent, bell: Bell, sandbox: ScriptedSandbox) -> Invocation:
    sandbox.outcome = RunOutcome(
        RunStatus.DOMAIN_ERROR, error_code="PRICE_CHANGED", error_message="It costs more.", report={}
    )
    client.post(f"/consents/{consent.wire_id}/try")
    bell.deliver()
    return Invocation.objects.filter(dry_run=True).latest("pk")


@pytest.mark.req("SPEC-2")
def test_an_approval_past_a_failed_dry_run_says_that_its_failure_was_seen(
    held: Invocation, operator: Person, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    consent, client = Consent.objects.get(), operator.client()
    dry = fail_dry(client, consent, bell, sandbox)
    path, said = f"/consents/{consent.wire_id}/decision", {"mode": "once", "reason": "The customer agreed."}

    page = page_of(operator, consent)
    refused = [client.post(path, said | {"acknowledged": seen}) for seen in ("", "inv_0")]

    assert "It costs more." in page
    assert 'name="acknowledged"' in page
    assert f'value="{dry.wire_id}" form="decision"' in page
    assert [answer.status_code for answer in refused] == [422, 422]
    assert "Confirm that you have seen it, or deny." in refused[0].content.decode()
    consent.refresh_from_db()
    assert consent.state == "requested"
    assert client.post(path, said | {"acknowledged": dry.wire_id}).status_code == 302
    fact = Fact.objects.get(kind="consent.approved")
    assert f'"failed_dry_run":"{dry.wire_id}"' in bytes(fact.leaf).decode()


def test_a_dry_run_that_fails_again_is_looked_at_again_and_one_that_succeeds_is_not(
    held: Invocation, operator: Person, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    consent, client = Consent.objects.get(), operator.client()
    first = fail_dry(client, consent, bell, sandbox)
    fail_dry(client, consent, bell, sandbox)
    path, said = f"/consents/{consent.wire_id}/decision", {"mode": "once", "reason": "Fine."}

    assert client.post(path, said | {"acknowledged": first.wire_id}).status_code == 422
    sandbox.outcome = RunOutcome(RunStatus.OK, value={}, report={})
    client.post(f"/consents/{consent.wire_id}/try")
    bell.deliver()

    assert client.post(path, said).status_code == 302
    fact = Fact.objects.get(kind="consent.approved")
    assert b"failed_dry_run" not in bytes(fact.leaf)


@pytest.mark.req("SPEC-2")
def test_a_dry_run_under_way_does_not_hide_the_one_that_failed_before_it(
    held: Invocation, operator: Person, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    consent, client = Consent.objects.get(), operator.client()
    dry = fail_dry(client, consent, bell, sandbox)

    client.post(f"/consents/{consent.wire_id}/try")
    done = client.post(f"/consents/{consent.wire_id}/decision", {"mode": "once", "reason": "Fine."})

    assert Invocation.objects.filter(dry_run=True, state="queued").exists()
    assert done.status_code == 422
    page = page_of(operator, consent)
    assert "It costs more." in page
    assert f'value="{dry.wire_id}" form="decision"' in page
    assert 'hx-trigger="live"' in page
    assert "Dry run failed" in client.get("/approvals").content.decode()
    consent.refresh_from_db()
    assert consent.state == "requested"


@pytest.mark.req("CARD-3", "SPEC-2")
def test_the_first_screen_says_whose_dry_run_failed(
    held: Invocation, operator: Person, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    client, consent = operator.client(), Consent.objects.get()
    before = client.get("/start", follow=True).content.decode()

    fail_dry(client, consent, bell, sandbox)

    after = client.get("/start", follow=True).content.decode()
    assert f"/consents/{consent.wire_id}" in before
    assert "Dry run failed" not in before
    assert "Dry run failed" in after


def test_a_denial_needs_no_second_look(
    held: Invocation, operator: Person, bell: Bell, sandbox: ScriptedSandbox
) -> None:
    consent, client = Consent.objects.get(), operator.client()
    fail_dry(client, consent, bell, sandbox)

    done = client.post(f"/consents/{consent.wire_id}/decision", {"decision": "deny", "reason": "It costs more."})

    assert done.status_code == 302
    consent.refresh_from_db()
    assert consent.state == "denied"


def test_only_who_may_decide_tries_and_only_what_can_be_tried(
    held: Invocation, operator: Person, auditor: Person, stranger: Person, caller: Caller
) -> None:
    consent = Consent.objects.get()
    path = f"/consents/{consent.wire_id}/try"

    assert auditor.client().post(path).status_code == 403
    assert stranger.client().post(path).status_code == 404
    consents.deny_consent(consent_id=consent.pk, reason="no", by=operator.by)
    assert operator.client().post(path).status_code == 409
    assert Invocation.objects.count() == 1


# Lists.


def test_what_waits_is_on_one_page_and_counted(held: Invocation, operator: Person, caller: Caller) -> None:
    request_grant(agent_id=caller.agent.pk, tools="other.*", purpose="to look", by=caller.by)

    page = operator.client().get("/approvals").content.decode()

    assert "a call waits" in page
    assert "other.*" in page
    assert '<span class="count"' in page
    Consent.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    GrantRequest.objects.all().delete()
    assert "Nothing is waiting" in operator.client().get("/approvals").content.decode()


@pytest.mark.parametrize(("language", "word"), [("en", "payment"), ("zh-hans", "支付信息")])
def test_kinds_of_data_are_named_in_the_language_of_the_reader(
    language: str, word: str, held: Invocation, operator: Person
) -> None:
    client = operator.client()
    client.cookies[settings.LANGUAGE_COOKIE_NAME] = language
    assert held.consent is not None

    for page in ("/approvals", f"/consents/{held.consent.wire_id}", f"/tools/{WRITE}"):
        assert f'<span class="tag">{word}</span>' in client.get(page).content.decode(), page


@pytest.mark.parametrize("what", ["grant", "consent"])
def test_several_are_revoked_with_a_typed_word(what: str, caller: Caller, operator: Person, stranger: Person) -> None:
    ids = []
    for number in (1, 2):
        if what == "grant":
            row: Any = give_grant(agent_id=caller.agent.pk, tools="a.*", reason="x", by=operator.by)
        else:
            row = consents.request_consent(tool=WRITE, versions=f"^{number}", purpose="x", validity_s=60, by=caller.by)
            consents.approve_consent(consent_id=row.pk, reason="x", by=operator.by)
        ids.append(row.wire_id)
    path, client = f"/{what}s/revoke", operator.client()

    asked = client.get(path, {what: ids})
    assert asked.status_code == 200
    assert all(each in asked.content.decode() for each in ids)
    for typed in ("", "revoke", "revoke 3"):
        wrong = client.post(path, {what: ids, "reason": "no longer", "confirm": typed})
        assert (wrong.status_code, "no longer" in wrong.content.decode()) == (422, True)
    assert "was chosen" in stranger.client().get(path, {what: ids}).content.decode()
    assert client.get(path, {what: "nonsense"}).status_code == 404
    assert not Fact.objects.filter(kind=f"{what}.revoked").exists()

    assert client.post(path, {what: ids, "reason": "no longer", "confirm": "revoke 2"}).status_code == 302
    assert Fact.objects.filter(kind=f"{what}.revoked").count() == 2


# Grants and requests.
