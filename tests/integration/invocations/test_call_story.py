"""Call story: does a call's page say first what happened, and lead on from what did not go well, without a value that is sealed?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from access.consents.services import approve_consent, revoke_consent
from access.halts import services as halts
from access.models import Consent, Reach
from evidence.models import Fact
from invocations.models import Invocation
from invocations.sandbox.base import RunOutcome, RunStatus
from tests.support.calls import row_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from registry.models import Tool
    from tests.conftest import Caller, Person
    from tests.support.calls import Bell, ScriptedSandbox

ECHO = "sample.tools.echo"
SECRET = "what nobody may read here"
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "number"}}}
SAYS_NO = RunOutcome(RunStatus.DOMAIN_ERROR, error_code="OUT_OF_STOCK", error_message="Only 3 are left.")
BREAKS = RunOutcome(RunStatus.RAISED, error_type="ValueError", error_message="x")


@pytest.fixture
def echo(enable: Callable[..., Tool], bell: Bell, sandbox: ScriptedSandbox) -> Tool:
    return enable(input_schema=SCHEMA)


def read(person: Person, call: Invocation, page: str = "invocation") -> str:
    response = person.client().get(reverse(page, args=[call.pk]))
    assert response.status_code == 200
    return str(response.content.decode())


@pytest.mark.req("CARD-6")
def test_the_story_says_who_asked_with_what_on_what_ground_and_no_value(
    echo: Tool, grant: Callable[..., Any], caller: Caller, operator: Person
) -> None:
    grant()
    call = row_of(caller.invoke(ECHO, {"text": SECRET, "n": 2}))

    page = read(operator, call)
    story = page.partition('<ol class="story">')[2].partition("</ol>")[0]

    for said in (
        caller.agent.name,
        ECHO,
        "text, 25 characters",
        "a number",
        "sample.*",
        "came back after",
        "It cost no money.",
    ):
        assert said in story, said
    assert SECRET not in page
    assert page.index('<ol class="story">') < page.index('id="timeline-h"') < page.index("One Begin, one End.")
    assert 'id="fault-h"' not in page


@pytest.mark.req("CARD-6")
def test_the_sealed_begin_and_end_are_a_tab(
    echo: Tool, grant: Callable[..., Any], caller: Caller, operator: Person
) -> None:
    grant()
    call = row_of(caller.invoke(ECHO, {"text": SECRET}))

    record = read(operator, call, "invocation_record")

    assert "Contents of Begin" in record
    assert '<ol class="story">' not in record
    assert "Contents of Begin" not in read(operator, call)


@pytest.mark.req("CARD-6", "TOOLS-19")
@pytest.mark.parametrize(
    ("who", "label"), [("operator", "Give this grant"), ("developer", "Ask for this grant"), ("auditor", "")]
)
def test_a_call_without_a_grant_leads_to_the_form_that_gives_it(
    who: str, label: str, echo: Tool, caller: Caller, request: pytest.FixtureRequest
) -> None:
    person: Person = request.getfixturevalue(who)
    call = row_of(caller.invoke(ECHO, {}))

    fault = read(person, call).partition('id="fault-h"')[2].partition("</section>")[0]

    assert "What helps:" in fault
    assert "AUTH.NO_GRANT" in fault
    assert f"{reverse('explain')}?agent={caller.agent.wire_id}&amp;tool={ECHO}" in fault
    assert ("grant" in label) == ("this grant" in fault)
    if label:
        assert label in fault
        page = "grant_new" if who == "operator" else "grant_request_new"
        form = person.client().get(f"{reverse(page)}?tools={ECHO}&agent={caller.agent.wire_id}").content.decode()
        assert f'<option value="{caller.agent.pk}" selected>' in form
        assert f'value="{ECHO}"' in form


def test_a_form_that_is_asked_for_somebody_else_s_agent_chooses_none(
    echo: Tool, foreign_caller: Caller, operator: Person
) -> None:
    for agent in (foreign_caller.agent.wire_id, "agt_x"):
        form = operator.client().get(f"{reverse('grant_new')}?agent={agent}").content.decode()
        assert str(foreign_caller.agent.pk) not in form


def test_a_stopped_call_leads_to_what_is_stopped(
    echo: Tool, grant: Callable[..., Any], caller: Caller, operator: Person
) -> None:
    grant()
    halts.throw_halt(reach=Reach.TOOL, target=ECHO, reason="it leaks", by=operator.by)
    call = row_of(caller.invoke(ECHO, {}))

    assert f'href="{reverse("halts")}">' in read(operator, call).partition('id="fault-h"')[2].partition("</section>")[0]


@pytest.mark.parametrize(
    ("outcome", "word", "red"), [(SAYS_NO, "Refused by the tool", False), (BREAKS, "Failed", True)]
)
def test_a_lawful_no_is_told_apart_from_a_fault_and_both_say_what_helps(
    outcome: RunOutcome,
    word: str,
    red: bool,
    echo: Tool,
    grant: Callable[..., Any],
    caller: Caller,
    operator: Person,
    sandbox: ScriptedSandbox,
) -> None:
    grant()
    sandbox.outcome = outcome
    call = row_of(caller.invoke(ECHO, {}))

    page = read(operator, call)
    fault = page.partition('class="card fault"')[2].partition("</section>")[0]

    assert word in fault
    assert ('data-tone="bad"' in fault) == red
    assert "Try again in a sandbox" in fault
    assert f"/tools/{ECHO}/try?version=" in fault
    assert "Only 3 are left." not in page


def test_an_auditor_who_reveals_the_message_reads_it_where_the_fault_is(
    echo: Tool, grant: Callable[..., Any], caller: Caller, auditor: Person, sandbox: ScriptedSandbox
) -> None:
    grant()
    sandbox.outcome = SAYS_NO
    call = row_of(caller.invoke(ECHO, {}))
    client = auditor.client()
    assert "Only 3 are left." not in read(auditor, call)

    shown = client.post(reverse("invocation_values", args=[call.pk]), {"reason": "A customer asked why."})

    assert "Only 3 are left." in shown.content.decode().partition('class="card fault"')[2].partition("</section>")[0]
    assert Fact.objects.filter(invocation_id=call.pk, kind="snapshot.read").exists()


@pytest.mark.req("CARD-3", "CARD-6")
def test_for_a_call_that_lacked_a_consent_somebody_asks_and_another_decides(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    caller: Caller,
    operator: Person,
    second_operator: Person,
    auditor: Person,
    stranger: Person,
) -> None:
    enable(side_effect="Read", consent={"required": True})
    grant()
    call = row_of(caller.invoke(ECHO, {"text": "x"}, on_consent="refuse"))
    assert call.reason == "POLICY.CONSENT_REQUIRED"
    to = reverse("consent_ask", args=[call.pk])
    fault = read(operator, call).partition('id="fault-h"')[2].partition("</section>")[0]
    assert f'href="{to}"' in fault
    assert f'href="{to}"' not in read(auditor, call)

    assert auditor.client().post(to, {"purpose": "To see."}).status_code == 403
    assert stranger.client().post(to, {"purpose": "To see."}).status_code == 404
    assert operator.client().post(to, {"purpose": " "}).status_code == 422
    asked = operator.client().post(to, {"purpose": "The report of this month."})

    consent = Consent.objects.get()
    assert asked.headers["Location"] == reverse("consent", args=[consent.pk])
    assert (consent.requested_by, consent.agent_id) == (operator.by.id, caller.agent.pk)
    decide, said = (
        reverse("consent_decide", args=[consent.pk]),
        {"decision": "approve", "mode": "period", "reason": "Fine."},
    )
    operator.client().post(decide, said)
    consent.refresh_from_db()
    assert consent.state == "requested"
    second_operator.client().post(decide, said)
    consent.refresh_from_db()
    assert consent.state == "approved"
    assert caller.invoke(ECHO, {"text": "x"}).status_code == 200
    fine = row_of(caller.invoke(ECHO, {"text": "z"}))
    answer = operator.client().post(reverse("consent_ask", args=[fine.pk]), {"purpose": "The report of this month."})
    assert answer.status_code == 422


@pytest.mark.req("CARD-6")
def test_a_consent_that_was_revoked_since_is_still_the_one_that_let_the_call_through(
    enable: Callable[..., Tool],
    grant: Callable[..., Any],
    bell: Bell,
    caller: Caller,
    operator: Person,
) -> None:
    enable(side_effect="Read", consent={"required": True})
    grant()
    caller.invoke(ECHO, {"text": "x"}, on_consent="ask", purpose="The report of this month.")
    consent = Consent.objects.get()
    approve_consent(consent_id=consent.pk, reason="Fine.", by=operator.by, mode="period")
    call = row_of(caller.invoke(ECHO, {"text": "x"}))
    assert call.consent_id == consent.pk
    link = f'href="{reverse("consent", args=[consent.pk])}"'

    def tell() -> list[str]:
        """Of the consent: the story, and the field of the call."""
        page = read(operator, call)
        story, rest = page.partition('<ol class="story">')[2].split("</ol>", 1)
        return [story, rest]

    for said in tell():
        assert link in said
        assert "since)" not in said
    revoke_consent(consent_id=consent.pk, reason="No more.", by=operator.by)
    for said in tell():
        assert link in said
        assert "(revoked since)" in said
        assert "Revoked" not in said


@pytest.mark.req("CARD-6")
def test_a_call_that_waits_for_a_consent_was_not_allowed_by_it(
    enable: Callable[..., Tool], grant: Callable[..., Any], bell: Bell, caller: Caller, operator: Person
) -> None:
    enable(side_effect="Read", consent={"required": True})
    grant()
    caller.invoke(ECHO, {"text": "x"}, on_consent="hold", purpose="Why.", headers={"Prefer": "respond-async"})

    story = read(operator, Invocation.objects.get()).partition('<ol class="story">')[2].partition("</ol>")[0]

    assert "and needs the consent" in story
    assert "Requested" in story
    assert "and by the consent" not in story


@pytest.mark.req("CARD-6")
def test_values_are_masked_until_they_are_revealed_and_then_stand_line_by_line(
    echo: Tool, grant: Callable[..., Any], caller: Caller, auditor: Person, operator: Person
) -> None:
    grant()
    call = row_of(caller.invoke(ECHO, {"text": f"{SECRET}, ann@example.org", "n": 2}))

    for person in (auditor, operator):
        page = read(person, call)
        assert "••••••" in page
        assert SECRET not in page
    to = reverse("invocation_values", args=[call.pk])
    assert operator.client().post(to, {"reason": "To find the mistake."}).status_code == 403
    assert SECRET not in auditor.client().post(to, {"reason": "short"}).content.decode()
    assert not Fact.objects.filter(invocation_id=call.pk, kind="snapshot.read").exists()

    page = auditor.client().post(to, {"reason": "To find the mistake."}).content.decode()

    shown, _, stored = page.partition("As it was stored, unmasked")
    assert SECRET in shown
    assert "ann@example.org" not in shown
    assert "ann@example.org" in stored
    assert Fact.objects.filter(invocation_id=call.pk, kind="snapshot.read").exists()
