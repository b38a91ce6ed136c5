"""Playground: do people talk with models through the playground's agent, with no more rights than it has and with their names in
the evidence?
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model

from access.agents.services import disable_agent
from access.budgets.services import set_budget
from access.consents.services import approve_consent, deny_consent, revoke_consent
from access.middleware import principal_of_user
from access.models import Agent, Budget, Consent, Grant
from access.problems import SelfApproval
from evidence.models import Fact
from invocations.agent_runs.limits import RunLimits
from invocations.agent_runs.models import AgentRun
from invocations.agent_runs.services import cancel_run
from invocations.models import Invocation
from invocations.playground import services
from invocations.playground.models import PlaygroundConversation, PlaygroundMessage
from invocations.playground.offers import load_offer
from invocations.playground.problems import PlaygroundAnswering, PlaygroundNotSetUp
from invocations.playground.services import MessageDraft
from invocations.playground.transcript import Transcript, find_waiting
from kernel.problems import Conflict, Forbidden, SchemaInvalid
from tests.integration.invocations.playground.conftest import REASON, Talker
from tests.support.agent_runs import ECHO, propose
from tests.support.connected_models import MODEL
from tests.support.scripted_models import text_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from invocations.playground.models import Playground
    from tests.conftest import Person
    from tests.support.model_calls import ProviderBench

pytestmark = pytest.mark.django_db(transaction=True)
OTHER = "model.script.other"


def read(conversation: PlaygroundConversation, by: Person) -> Any:
    return Transcript(conversation, services.list_messages(conversation), by=by.by).messages


def run_of(message: PlaygroundMessage, place: int = 1) -> AgentRun:
    run = message.sides.get(place=place).run
    assert run is not None
    return run


# Setting up.


@pytest.mark.req("CARD-3")
def test_whoever_sets_it_up_makes_an_agent_with_grants_and_budgets(playground: Playground) -> None:
    agent = playground.agent
    assert agent.name == "playground"
    assert not agent.keys.exists()
    assert set(Grant.objects.filter(agent=agent).values_list("tools", flat=True)) == {"model.*", "sample.*"}
    assert set(Budget.objects.filter(agent=agent).values_list("dimension", "amount")) == {
        ("money", 10**9),
        ("calls", 100),
    }
    fact = Fact.objects.get(kind="playground.created")
    assert (fact.subject, fact.actor_id, fact.content["data"]) == (
        playground.wire_id,
        playground.created_by,
        {"agent": agent.wire_id},
    )


@pytest.mark.req("CARD-3")
def test_a_tenant_has_one_playground(playground: Playground, operator: Person) -> None:
    with pytest.raises(Conflict):
        services.set_up_playground(
            name="second", models=["model.*"], tools="", money=1, calls=None, reason=REASON, by=operator.by
        )
    assert not Agent.objects.filter(name="second").exists()


@pytest.mark.req("TOOLS-15")
def test_who_may_not_give_grants_sets_up_nothing(model: Any, developer: Person) -> None:
    with pytest.raises(Forbidden):
        services.set_up_playground(
            name="mine", models=["model.*"], tools="*", money=1, calls=None, reason=REASON, by=developer.by
        )
    assert not Agent.objects.filter(name="mine").exists()


@pytest.mark.req("RUN-1")
def test_without_a_playground_nothing_is_sent(model: Any, developer: Person) -> None:
    with pytest.raises(PlaygroundNotSetUp):
        services.send_message(MessageDraft("Hi", (MODEL,)), token=uuid4(), by=developer.by)


@pytest.mark.req("TOOLS-15")
def test_an_auditor_does_not_talk(playground: Playground, auditor: Person) -> None:
    with pytest.raises(Forbidden):
        services.send_message(MessageDraft("Hi", (MODEL,)), token=uuid4(), by=auditor.by)


@pytest.mark.req("TOOLS-15")
def test_nothing_is_sent_through_an_agent_that_is_disabled(
    dana: Talker, playground: Playground, operator: Person
) -> None:
    disable_agent(agent_id=playground.agent_id, reason=REASON, by=operator.by)
    with pytest.raises(Conflict):
        dana.send()


# Talking.


@pytest.mark.req("RUN-1")
def test_a_message_is_a_run_of_the_agent_on_behalf_of_the_person(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [propose("a"), text_answer("It is a.")]
    sent = dana.send("Which is it?")

    run = run_of(sent)
    assert (run.state, run.agent.name, run.credential["key"]) == ("succeeded", "playground", None)
    began = Fact.objects.get(subject=run.wire_id, kind="agent_run.began")
    assert (began.actor_id, began.content["data"]["on_behalf_of"]) == (run.agent.wire_id, "user")
    fact = Fact.objects.get(kind="playground_message.sent")
    assert (fact.subject, fact.actor_id) == (sent.wire_id, dana.person.by.id)
    assert fact.content["data"]["runs"] == [run.wire_id]
    calls = Invocation.objects.filter(run_step__run=run)
    assert {call.user_fingerprint for call in calls} == {run.user_fingerprint} != {""}

    (view,) = read(sent.conversation, dana.person)
    assert (view.text, view.tools) == ("Which is it?", [ECHO])
    first, second = view.sides[0].turns
    assert second.text == "It is a."
    assert (first.proposals[0].decision, first.proposals[0].arguments) == ("allowed", {"text": "a"})
    assert first.proposals[0].result == {"text": "a+"}
    assert view.sides[0].tokens > 0


@pytest.mark.req("RUN-1")
def test_the_next_message_is_asked_with_what_was_said_before(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("It is a."), text_answer("Since b is not.")]
    sent = dana.send("Which is it?")
    dana.send("Why?", conversation_id=sent.conversation_id)

    said = [(each.role, each.segments[0].text) for each in bench.requests[1].messages]
    assert [(str(role), text) for role, text in said][-3:] == [
        ("user", "Which is it?"),
        ("assistant", "It is a."),
        ("user", "Why?"),
    ]
    assert [view.text for view in read(sent.conversation, dana.person)] == ["Which is it?", "Why?"]


@pytest.mark.req("RUN-1")
def test_the_same_form_sent_twice_is_one_message(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("Once")]
    token, draft = uuid4(), MessageDraft("Hi", (MODEL,))
    first = services.send_message(draft, token=token, by=dana.person.by)
    again = services.send_message(draft, token=token, by=dana.person.by)

    assert first.pk == again.pk
    assert AgentRun.objects.count() == 1


@pytest.mark.req("RUN-1")
def test_two_that_race_with_one_form_are_one_message(
    dana: Talker, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scripts = [text_answer("Once")]
    token, draft, find = uuid4(), MessageDraft("Hi", (MODEL,)), services._find_sent
    first = services.send_message(draft, token=token, by=dana.person.by)
    looks = iter([lambda *_, **__: None, find])  # the other has not committed when the first look is made
    monkeypatch.setattr(services, "_find_sent", lambda *args, **said: next(looks)(*args, **said))
    again = services.send_message(draft, token=token, by=dana.person.by)

    assert first.pk == again.pk
    assert AgentRun.objects.count() == 1


@pytest.mark.req("RUN-1")
def test_the_same_form_sent_twice_into_a_conversation_is_one_message_while_it_is_answered(
    dana: Talker, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scripts = [text_answer("First"), text_answer("Once")]
    talk = dana.send().conversation_id
    token, draft, find = uuid4(), MessageDraft("Hi", (MODEL,)), services._find_sent
    first = services.send_message(draft, token=token, conversation_id=talk, by=dana.person.by)
    looks = iter(
        [lambda *_, **__: None, find]
    )  # the other has the row, and has not committed, when the first look is made
    monkeypatch.setattr(services, "_find_sent", lambda *args, **said: next(looks)(*args, **said))
    again = services.send_message(draft, token=token, conversation_id=talk, by=dana.person.by)

    assert first.pk == again.pk
    assert PlaygroundMessage.objects.count() == 2
    dana.driver.drive()


@pytest.mark.req("RUN-1")
def test_one_message_is_answered_at_a_time(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("Slow")]
    sent = dana.send(answered=False)
    with pytest.raises(PlaygroundAnswering):
        dana.send(conversation_id=sent.conversation_id)


@pytest.mark.req("TOOLS-21")
def test_nobody_goes_on_with_the_conversation_of_another(dana: Talker, bench: ProviderBench, operator: Person) -> None:
    bench.scripts = [text_answer("Done")]
    sent = dana.send()
    with pytest.raises(Forbidden):
        services.send_message(
            MessageDraft("Me too", (MODEL,)), token=uuid4(), conversation_id=sent.conversation_id, by=operator.by
        )


@pytest.mark.req("RUN-1")
def test_a_message_goes_to_two_models_and_each_side_goes_on_with_its_own_words(
    dana: Talker, second_model: Any, bench: ProviderBench
) -> None:
    bench.scripts = [text_answer("One"), text_answer("Two"), text_answer("Three"), text_answer("Four")]
    sent = dana.send("Which?", models=(MODEL, OTHER))

    assert [side.model for side in sent.sides.order_by("place")] == [MODEL, OTHER]
    first = read(sent.conversation, dana.person)[0]
    assert [side.turns[0].text for side in first.sides] == ["One", "Two"]
    dana.send("And?", models=(MODEL, OTHER), conversation_id=sent.conversation_id)
    assert [request.messages[-2].segments[0].text for request in bench.requests[2:]] == ["One", "Two"]


@pytest.mark.req("RUN-1")
def test_a_second_model_that_may_not_be_asked_is_said_beside_the_answer_of_the_first(
    dana: Talker, bench: ProviderBench
) -> None:
    bench.scripts = [text_answer("One")]
    sent = dana.send(models=(MODEL, "model.script.none"))

    (view,) = read(sent.conversation, dana.person)
    assert view.sides[0].turns[0].text == "One"
    assert view.sides[1].run is None
    assert view.sides[1].problem.reason == sent.sides.get(place=2).reason


@pytest.mark.req("RUN-1")
def test_the_same_model_twice_is_no_comparison(dana: Talker) -> None:
    with pytest.raises(SchemaInvalid):
        dana.send(models=(MODEL, MODEL))


# Rights.


@pytest.mark.req("LLM-3", "RUN-1")
def test_what_is_offered_is_what_the_agent_may_call(dana: Talker, playground: Playground, operator: Person) -> None:
    offer = load_offer(playground)
    assert [each.id for each in offer.models] == [MODEL]
    assert [each.id for each in offer.tools] == [ECHO]


@pytest.mark.req("RUN-1", "TOOLS-15")
def test_a_tool_beyond_the_grants_is_not_called_whatever_the_person_may(
    dana: Talker, playground: Playground, bench: ProviderBench, enable: Callable[..., Any]
) -> None:
    Grant.objects.filter(agent=playground.agent, tools="sample.*").update(tools="other.*")
    bench.scripts = [propose("a"), text_answer("Well")]
    sent = dana.send(tools=())

    (view,) = read(sent.conversation, dana.person)
    (proposed,) = view.sides[0].turns[0].proposals
    assert (proposed.decision, proposed.problem.reason) == ("refused", "AUTH.NO_GRANT")
    assert proposed.problem.cure
    assert view.sides[0].turns[1].text == "Well"


@pytest.mark.req("RUN-1", "TOOLS-29")
def test_a_budget_that_is_used_up_is_told_and_nothing_is_kept(
    dana: Talker, playground: Playground, operator: Person
) -> None:
    set_budget(scope="agent", dimension="calls", amount=0, agent_id=playground.agent_id, by=operator.by)
    with pytest.raises(services.MessageRefused) as refused:
        dana.send()

    assert [problem.reason for problem in refused.value.problems] == ["QUOTA.BUDGET_EXCEEDED"]
    assert not PlaygroundMessage.objects.exists()
    assert Fact.objects.filter(kind="agent_run.refused").count() == 1
    sent = Fact.objects.get(kind="playground_message.sent")
    assert (sent.actor_id, sent.content["data"]["runs"]) == (dana.person.by.id, [""])


@pytest.mark.req("RUN-2")
def test_limits_of_a_message_are_those_of_its_runs(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [propose("a"), propose("b")]
    sent = dana.send(limits=RunLimits(steps=1), max_tokens=7)

    assert run_of(sent).stop_reason == "steps"
    assert bench.requests[0].max_tokens == 7


@pytest.mark.req("RUN-1")
def test_cancelling_ends_both_sides(dana: Talker, second_model: Any, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("x"), text_answer("y")]
    sent = dana.send(models=(MODEL, OTHER), answered=False)
    assert services.cancel_answers(conversation_id=sent.conversation_id, by=dana.person.by) == 2
    dana.driver.drive()

    assert {run.state for run in AgentRun.objects.all()} == {"cancelled"}


@pytest.mark.req("TOOLS-15")
def test_nobody_cancels_a_conversation_that_they_do_not_see(
    dana: Talker, bench: ProviderBench, operator: Person, auditor: Person
) -> None:
    bench.scripts = [text_answer("x")]
    sent = dana.send(answered=False)
    with pytest.raises(PlaygroundConversation.DoesNotExist):
        services.cancel_answers(conversation_id=sent.conversation_id, by=operator.by)
    with pytest.raises(Forbidden):
        services.cancel_answers(conversation_id=sent.conversation_id, by=auditor.by)
    dana.driver.drive()


@pytest.mark.req("RUN-1")
def test_a_run_that_ends_meanwhile_is_not_in_the_way_of_cancelling_the_other(
    dana: Talker, second_model: Any, bench: ProviderBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.scripts = [text_answer("x"), text_answer("y")]
    sent = dana.send(models=(MODEL, OTHER), answered=False)
    cancel_run(run_id=run_of(sent).pk, by=dana.person.by)
    both = [run_of(sent), run_of(sent, 2)]
    both[0].cancel_asked_at = None  # as it was when it was looked for
    monkeypatch.setattr(services, "find_open_runs", lambda _: both)

    assert services.cancel_answers(conversation_id=sent.conversation_id, by=dana.person.by) == 1
    dana.driver.drive()
    assert {run.state for run in AgentRun.objects.all()} == {"cancelled"}


# Consents.


@pytest.fixture
def held(dana: Talker, bench: ProviderBench, enable: Callable[..., Any]) -> PlaygroundMessage:
    enable("write", side_effect="Write", consent={"validity_seconds": 3600})
    bench.scripts = [propose("a", tool="sample.tools.write"), text_answer("Written"), text_answer("Hi")]
    return dana.send(tools=("sample.tools.write",))


@pytest.mark.req("RUN-2", "TOOLS-19")
def test_a_call_that_needs_a_person_waits_and_goes_on_when_another_approves(
    held: PlaygroundMessage, dana: Talker, operator: Person
) -> None:
    (view,) = read(held.conversation, dana.person)
    (proposed,) = view.sides[0].turns[0].proposals
    assert (proposed.decision, proposed.may_decide, view.sides[0].is_followed) == ("held", False, True)
    (view,) = read(held.conversation, operator)
    assert view.sides[0].turns[0].proposals[0].may_decide
    assert not view.sides[0].is_followed

    approve_consent(consent_id=Consent.objects.get().pk, reason="Fine", by=operator.by)
    dana.driver.drive()

    (view,) = read(held.conversation, dana.person)
    (proposed,) = view.sides[0].turns[0].proposals
    assert (proposed.decision, proposed.consent.decided_by) == ("approved", operator.by.id)
    assert view.sides[0].turns[1].text == "Written"


@pytest.mark.req("TOOLS-15")
def test_who_sees_a_held_conversation_does_not_cancel_it(held: PlaygroundMessage, operator: Person) -> None:
    with pytest.raises(Forbidden):
        services.cancel_answers(conversation_id=held.conversation_id, by=operator.by)


@pytest.mark.req("TOOLS-19")
def test_who_revokes_a_consent_is_not_the_one_who_approved(
    held: PlaygroundMessage, dana: Talker, operator: Person
) -> None:
    approve_consent(consent_id=Consent.objects.get().pk, reason="Fine", by=operator.by)
    dana.driver.drive()
    (view,) = read(held.conversation, dana.person)
    assert view.sides[0].turns[0].proposals[0].is_decided
    revoke_consent(consent_id=Consent.objects.get().pk, reason="No more", by=operator.by)

    (view,) = read(held.conversation, dana.person)
    (proposed,) = view.sides[0].turns[0].proposals
    assert (proposed.decision, proposed.is_decided) == ("approved", False)


@pytest.mark.req("TOOLS-21")
def test_a_consent_of_before_neither_names_its_decider_nor_shows_the_conversation(
    held: PlaygroundMessage, dana: Talker, operator: Person, bench: ProviderBench
) -> None:
    approve_consent(consent_id=Consent.objects.get().pk, reason="Fine", by=operator.by)
    dana.driver.drive()
    scripts = bench.scripts  # which the model reads from
    assert isinstance(scripts, list)
    scripts[2:] = [propose("a", tool="sample.tools.write"), text_answer("Written again")]
    later = dana.send(tools=("sample.tools.write",))

    (view,) = read(later.conversation, dana.person)
    (proposed,) = view.sides[0].turns[0].proposals
    assert (proposed.consent.pk, proposed.decision, proposed.is_decided) == (
        Consent.objects.get().pk,
        "allowed",
        False,
    )
    visible = PlaygroundConversation.objects.visible_to(operator.by)
    assert set(visible.values_list("pk", flat=True)) == {held.conversation_id}


@pytest.mark.req("TOOLS-19")
def test_calls_that_wait_for_one_consent_are_decided_on_once(
    dana: Talker, second_model: Any, bench: ProviderBench, enable: Callable[..., Any], operator: Person
) -> None:
    enable("write", side_effect="Write", consent={"validity_seconds": 3600})
    bench.scripts = [propose("a", tool="sample.tools.write"), propose("a", tool="sample.tools.write")]
    sent = dana.send(models=(MODEL, OTHER), tools=("sample.tools.write",))
    assert Consent.objects.count() == 1

    (view,) = read(sent.conversation, operator)
    first, second = (side.turns[0].proposals[0] for side in view.sides)
    assert (first.may_decide, first.together, second.may_decide, second.waits_above) == (True, 2, False, True)
    later = Transcript(sent.conversation, [sent], places=(2,), by=operator.by).messages[0]
    assert [side.side.place for side in later.sides] == [2]
    assert later.sides[0].turns[0].proposals[0].waits_above
    assert [call.pk for call, _ in find_waiting(operator.by)]


@pytest.mark.req("RUN-1", "TOOLS-19")
def test_what_a_person_denies_is_told_the_model(held: PlaygroundMessage, dana: Talker, operator: Person) -> None:
    deny_consent(consent_id=Consent.objects.get().pk, reason="No", by=operator.by)
    dana.driver.drive()

    (view,) = read(held.conversation, dana.person)
    assert view.sides[0].turns[0].proposals[0].decision == "denied"
    assert view.sides[0].turns[1].text == "Written"


@pytest.mark.req("TOOLS-19")
def test_whoever_sent_the_message_does_not_decide_on_its_calls(
    playground: Playground, operator: Person, bench: ProviderBench, enable: Callable[..., Any], dana: Talker
) -> None:
    enable("write", side_effect="Write", consent={"validity_seconds": 3600})
    bench.scripts = [propose("a", tool="sample.tools.write"), text_answer("Written")]
    Talker(operator, dana.driver).send(tools=("sample.tools.write",))
    consent = Consent.objects.get()

    for decide in (approve_consent, deny_consent):
        with pytest.raises(SelfApproval):
            decide(consent_id=consent.pk, reason="Mine", by=operator.by)


@pytest.mark.req("TOOLS-19")
def test_whoever_made_the_agent_does_not_decide_on_calls_of_others(
    held: PlaygroundMessage, playground: Playground, tenant: Any
) -> None:
    owner = principal_of_user(get_user_model().objects.get(username="owen"), tenant)
    assert owner.id == playground.created_by
    with pytest.raises(SelfApproval):
        approve_consent(consent_id=Consent.objects.get().pk, reason="Mine", by=owner)


# Values.


@pytest.mark.req("TOOLS-21")
def test_each_first_look_at_a_value_is_a_fact_and_no_further_one(dana: Talker, bench: ProviderBench) -> None:
    bench.scripts = [text_answer("Done")]
    sent = dana.send()
    looks = Fact.objects.filter(kind="snapshot.read", actor_id=dana.person.by.id)
    read(sent.conversation, dana.person)
    seen = looks.count()
    read(sent.conversation, dana.person)

    assert seen == looks.count() == 2


@pytest.mark.req("TOOLS-21")
def test_others_see_a_conversation_only_when_they_are_asked_to_decide_and_then_masked(
    dana: Talker, operator: Person, held: PlaygroundMessage
) -> None:
    visible = type(held.conversation).objects.visible_to
    assert visible(operator.by).filter(pk=held.conversation_id).exists()
    approve_consent(consent_id=Consent.objects.get().pk, reason="Fine", by=operator.by)
    dana.driver.drive()
    private = dana.send("Write to erika@example.org", tools=())
    assert not visible(operator.by).filter(pk=private.conversation_id).exists()
    (view,) = read(private.conversation, operator)
    assert "erika@example.org" not in view.text
    assert json.dumps(read(private.conversation, dana.person)[0].text) == '"Write to erika@example.org"'
